/** The inbox's words, in five languages. */

import { type ProblemKind, WORDS } from "../problem.js";

/** The words of one language. */
export interface Texts extends Record<ProblemKind, string> {
  title: string;
  /** `{n}` is the number. */
  unreadCount: string;
  all: string;
  unread: string;
  markAll: string;
  markRead: string;
  markUnread: string;
  remove: string;
  removed: string;
  undo: string;
  empty: string;
  emptyUnread: string;
  loading: string;
  retry: string;
  close: string;
  preferences: string;
  arrived: string;
  always: string;
  nothing: string;
  /** The names of channels. */
  channels: Record<string, string>;
}

const en: Texts = {
  title: "Notifications",
  unreadCount: "{n} unread",
  all: "All",
  unread: "Unread",
  markAll: "Mark all as read",
  markRead: "Mark as read",
  markUnread: "Mark as unread",
  remove: "Delete",
  removed: "Deleted",
  undo: "Undo",
  empty: "Nothing here yet",
  emptyUnread: "You have read everything",
  loading: "Loading",
  retry: "Try again",
  close: "Close",
  preferences: "Settings",
  arrived: "New notification",
  always: "Always sent",
  nothing: "Nothing but what is always sent",
  channels: { push: "Push", email: "E-mail", sms: "Text message", inapp: "In the app" },
  ...WORDS,
};

const de: Texts = {
  title: "Mitteilungen",
  unreadCount: "{n} ungelesen",
  all: "Alle",
  unread: "Ungelesen",
  markAll: "Alle als gelesen markieren",
  markRead: "Als gelesen markieren",
  markUnread: "Als ungelesen markieren",
  remove: "Löschen",
  removed: "Gelöscht",
  undo: "Rückgängig",
  empty: "Noch nichts hier",
  emptyUnread: "Alles gelesen",
  loading: "Wird geladen",
  retry: "Noch einmal versuchen",
  close: "Schließen",
  preferences: "Einstellungen",
  arrived: "Neue Mitteilung",
  always: "Wird immer gesendet",
  nothing: "Nichts, außer was immer gesendet wird",
  channels: { push: "Push", email: "E-Mail", sms: "SMS", inapp: "In der App" },
  offline: "Keine Verbindung. Prüfen Sie das Netz und versuchen Sie es noch einmal.",
  busy: "Der Dienst ist ausgelastet. Versuchen Sie es gleich noch einmal.",
  "signed-out": "Sie wurden abgemeldet. Melden Sie sich wieder an.",
  "not-allowed": "Das dürfen Sie nicht.",
  gone: "Das gibt es nicht mehr.",
  failed: "Das hat nicht geklappt. Versuchen Sie es später noch einmal.",
};

const fr: Texts = {
  title: "Notifications",
  unreadCount: "{n} non lues",
  all: "Toutes",
  unread: "Non lues",
  markAll: "Tout marquer comme lu",
  markRead: "Marquer comme lue",
  markUnread: "Marquer comme non lue",
  remove: "Supprimer",
  removed: "Supprimée",
  undo: "Annuler",
  empty: "Rien pour le moment",
  emptyUnread: "Vous avez tout lu",
  loading: "Chargement",
  retry: "Réessayer",
  close: "Fermer",
  preferences: "Réglages",
  arrived: "Nouvelle notification",
  always: "Toujours envoyé",
  nothing: "Rien, sauf ce qui est toujours envoyé",
  channels: { push: "Push", email: "E-mail", sms: "SMS", inapp: "Dans l’application" },
  offline: "Vous semblez hors ligne. Vérifiez votre connexion et réessayez.",
  busy: "Le service est occupé. Réessayez dans un instant.",
  "signed-out": "Vous avez été déconnecté. Reconnectez-vous pour continuer.",
  "not-allowed": "Vous ne pouvez pas faire cela.",
  gone: "Cela n’existe plus.",
  failed: "Cela n’a pas fonctionné. Réessayez plus tard.",
};

const es: Texts = {
  title: "Notificaciones",
  unreadCount: "{n} sin leer",
  all: "Todas",
  unread: "Sin leer",
  markAll: "Marcar todo como leído",
  markRead: "Marcar como leída",
  markUnread: "Marcar como no leída",
  remove: "Eliminar",
  removed: "Eliminada",
  undo: "Deshacer",
  empty: "Aún no hay nada",
  emptyUnread: "Ya lo ha leído todo",
  loading: "Cargando",
  retry: "Reintentar",
  close: "Cerrar",
  preferences: "Ajustes",
  arrived: "Nueva notificación",
  always: "Se envía siempre",
  nothing: "Nada, salvo lo que se envía siempre",
  channels: { push: "Push", email: "Correo", sms: "SMS", inapp: "En la aplicación" },
  offline: "Parece que no hay conexión. Compruébela e inténtelo de nuevo.",
  busy: "El servicio está ocupado. Inténtelo de nuevo en un momento.",
  "signed-out": "Se ha cerrado su sesión. Iníciela de nuevo para continuar.",
  "not-allowed": "No puede hacer eso.",
  gone: "Eso ya no existe.",
  failed: "No ha funcionado. Inténtelo más tarde.",
};

const ar: Texts = {
  title: "الإشعارات",
  unreadCount: "غير مقروء: {n}",
  all: "الكل",
  unread: "غير المقروءة",
  markAll: "تحديد الكل كمقروء",
  markRead: "تحديد كمقروء",
  markUnread: "تحديد كغير مقروء",
  remove: "حذف",
  removed: "تم الحذف",
  undo: "تراجع",
  empty: "لا شيء هنا بعد",
  emptyUnread: "لقد قرأت كل شيء",
  loading: "جارٍ التحميل",
  retry: "حاول مجددًا",
  close: "إغلاق",
  preferences: "الإعدادات",
  arrived: "إشعار جديد",
  always: "يُرسل دائمًا",
  nothing: "لا شيء سوى ما يُرسل دائمًا",
  channels: { push: "إشعارات فورية", email: "البريد الإلكتروني", sms: "رسالة نصية", inapp: "داخل التطبيق" },
  offline: "يبدو أنك غير متصل. تحقق من اتصالك ثم حاول مجددًا.",
  busy: "الخدمة مشغولة. حاول مجددًا بعد قليل.",
  "signed-out": "تم تسجيل خروجك. سجّل الدخول للمتابعة.",
  "not-allowed": "لا يمكنك فعل ذلك.",
  gone: "لم يعد ذلك موجودًا.",
  failed: "لم ينجح ذلك. حاول لاحقًا.",
};

const ALL: Record<string, Texts> = { en, de, fr, es, ar };

/** The words of a language tag such as `de-CH`; English where there are none. */
export function textsOf(lang: string): Texts {
  return ALL[lang.split("-")[0]!.toLowerCase()] ?? en;
}

/** Whether a language is written from right to left. */
export function isRightToLeft(lang: string): boolean {
  return /^(ar|fa|he|ur)\b/i.test(lang);
}
