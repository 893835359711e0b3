"""The words of the page for users, in the languages that it speaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct


class Words(Struct, frozen=True, kw_only=True):
    """The words of one language; ``{}`` stands for the title of a type, or for channels."""

    title: str
    intro: str
    channels: Mapping[str, str]
    """The names of the channels that have one."""
    always: str
    nothing: str
    quiet_hours: str
    since: str
    until: str
    save: str
    saved: str
    unsubscribe: str
    unsubscribe_all: str
    unsubscribed: str


WORDS: Final[Mapping[str, Words]] = {
    "en": Words(
        title="Your notifications",
        intro="Choose what you want to receive, and how.",
        channels={"push": "Push", "email": "E-mail", "sms": "Text message", "inapp": "In the app"},
        always="Always sent",
        nothing="Send me nothing but what is always sent",
        quiet_hours="Quiet hours",
        since="From",
        until="Until",
        save="Save",
        saved="Saved.",
        unsubscribe="Unsubscribe from “{}”",
        unsubscribe_all="Unsubscribe from these messages",
        unsubscribed="You are unsubscribed.",
    ),
    "de": Words(
        title="Ihre Benachrichtigungen",
        intro="Wählen Sie, was Sie erhalten möchten, und auf welchem Weg.",
        channels={"push": "Push", "email": "E-Mail", "sms": "SMS", "inapp": "In der App"},
        always="Wird immer gesendet",
        nothing="Nichts senden, außer was immer gesendet wird",
        quiet_hours="Ruhezeit",
        since="Von",
        until="Bis",
        save="Speichern",
        saved="Gespeichert.",
        unsubscribe="„{}“ abbestellen",
        unsubscribe_all="Diese Nachrichten abbestellen",
        unsubscribed="Sie sind abgemeldet.",
    ),
    "fr": Words(
        title="Vos notifications",
        intro="Choisissez ce que vous voulez recevoir, et comment.",
        channels={"push": "Push", "email": "E-mail", "sms": "SMS", "inapp": "Dans l’application"},
        always="Toujours envoyé",
        nothing="Ne rien m’envoyer, sauf ce qui est toujours envoyé",
        quiet_hours="Heures calmes",
        since="De",
        until="À",
        save="Enregistrer",
        saved="Enregistré.",
        unsubscribe="Se désabonner de « {} »",
        unsubscribe_all="Se désabonner de ces messages",
        unsubscribed="Vous êtes désabonné.",
    ),
    "es": Words(
        title="Sus notificaciones",
        intro="Elija qué desea recibir y cómo.",
        channels={"push": "Push", "email": "Correo electrónico", "sms": "SMS", "inapp": "En la aplicación"},
        always="Se envía siempre",
        nothing="No enviarme nada, salvo lo que se envía siempre",
        quiet_hours="Horas de silencio",
        since="Desde",
        until="Hasta",
        save="Guardar",
        saved="Guardado.",
        unsubscribe="Darse de baja de «{}»",
        unsubscribe_all="Darse de baja de estos mensajes",
        unsubscribed="Se ha dado de baja.",
    ),
    "pt-BR": Words(
        title="Suas notificações",
        intro="Escolha o que quer receber e como.",
        channels={"push": "Push", "email": "E-mail", "sms": "SMS", "inapp": "No aplicativo"},
        always="Sempre enviado",
        nothing="Não me enviar nada além do que é sempre enviado",
        quiet_hours="Horário de silêncio",
        since="Das",
        until="Até",
        save="Salvar",
        saved="Salvo.",
        unsubscribe="Cancelar a inscrição em “{}”",
        unsubscribe_all="Cancelar a inscrição nestas mensagens",
        unsubscribed="Inscrição cancelada.",
    ),
    "ja": Words(
        title="通知の設定",
        intro="受け取りたい通知とその方法を選んでください。",
        channels={"push": "プッシュ通知", "email": "メール", "sms": "SMS", "inapp": "アプリ内"},
        always="常に送信されます",
        nothing="常に送信されるもの以外は受け取らない",
        quiet_hours="おやすみ時間",
        since="開始",
        until="終了",
        save="保存",
        saved="保存しました。",
        unsubscribe="「{}」の配信を停止する",
        unsubscribe_all="これらのメッセージの配信を停止する",
        unsubscribed="配信を停止しました。",
    ),
}


def language_of(*wanted: str | None) -> str:
    """Return the first of the *wanted* languages that the page speaks, by its whole name or its beginning; English."""
    for each in wanted:
        if each is None:
            continue
        for name in WORDS:
            if name.lower() == each.lower() or name.partition("-")[0] == each.lower().partition("-")[0]:
                return name
    return "en"


def accepted(header: str | None) -> list[str]:
    """List the languages of an ``Accept-Language`` header, the most wanted first (RFC 9110, section 12.5.4)."""
    ranked: list[tuple[float, str]] = []
    for part in (header or "").split(",")[:20]:
        name, _, weight = part.strip().partition(";")
        try:
            ranked.append((float(weight.strip().removeprefix("q=") or 1), name))
        except ValueError:
            continue
    return [name for _, name in sorted(ranked, key=lambda each: -each[0]) if name]
