/** The look of the inbox: colours by variables, light and dark, both writing directions. */

export const STYLE = `
:host {
  --_accent: var(--waypost-accent, light-dark(#1d4ed8, #8ab4ff));
  --_background: var(--waypost-background, light-dark(#fff, #1c1f26));
  --_text: var(--waypost-text, light-dark(#1a1d23, #eceef2));
  --_muted: var(--waypost-muted, light-dark(#565d6b, #a7aebb));
  --_border: var(--waypost-border, light-dark(#dfe2e8, #373c47));
  --_hover: var(--waypost-hover, light-dark(#f3f5f9, #272b34));
  --_unread: var(--waypost-unread, light-dark(#eef4ff, #202b40));
  --_badge: var(--waypost-badge, #c8102e);
  --_radius: var(--waypost-radius, 12px);
  display: inline-block;
  position: relative;
  color-scheme: light dark;
  font: 14px/1.45 var(--waypost-font, system-ui, sans-serif);
}
:host([hidden]) { display: none; }
:host([theme="light"]) { color-scheme: light; }
:host([theme="dark"]) { color-scheme: dark; }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
button, a { font: inherit; color: inherit; }
button { background: none; border: 0; border-radius: 8px; padding: 6px 8px; cursor: pointer; }
button:hover { background: var(--_hover); }
:focus-visible { outline: 2px solid var(--_accent); outline-offset: 1px; }
svg { display: block; fill: none; stroke: currentColor; stroke-width: 1.8; stroke-linecap: round; stroke-linejoin: round; }
.bell { position: relative; color: var(--waypost-bell, inherit); padding: 8px; }
.badge {
  position: absolute; inset-block-start: 0; inset-inline-end: 0; min-width: 18px; padding: 0 5px;
  border-radius: 9px; background: var(--_badge); color: #fff; font-size: 11px; font-weight: 600; line-height: 18px; text-align: center;
}
.panel {
  position: absolute; z-index: var(--waypost-z, 1000); inset-block-start: calc(100% + 8px); inset-inline-end: 0;
  display: flex; flex-direction: column; width: var(--waypost-width, 380px); max-height: var(--waypost-height, min(560px, max(240px, var(--_room, 80vh))));
  background: var(--_background); color: var(--_text); border: 1px solid var(--_border); border-radius: var(--_radius);
  box-shadow: 0 12px 32px rgb(0 0 0 / 18%); overflow: hidden; text-align: start;
}
:host([align="start"]) .panel { inset-inline: 0 auto; }
header { display: flex; align-items: center; gap: 4px; padding-block: 12px 4px; padding-inline: 16px 8px; }
h2 { flex: 1; margin: 0; font-size: 16px; }
.tools { display: flex; align-items: center; gap: 4px; padding: 0 12px 8px; border-block-end: 1px solid var(--_border); }
.tools button { color: var(--_muted); }
.tools button[aria-pressed="true"] { color: var(--_text); font-weight: 600; background: var(--_hover); }
.tools .all { margin-inline-start: auto; color: var(--_accent); }
.all:disabled { opacity: .45; cursor: default; }
.scroll { flex: 1; overflow-y: auto; overscroll-behavior: contain; min-height: 160px; }
ul { list-style: none; margin: 0; padding: 0; }
li { display: grid; grid-template-columns: 1fr auto; border-block-end: 1px solid var(--_border); }
li:hover { background: var(--_hover); }
li.unread { background: var(--_unread); }
.main { display: grid; grid-template-columns: 10px auto 1fr; gap: 2px 8px; padding: 12px; text-decoration: none; text-align: start; border-radius: 0; width: 100%; cursor: pointer; }
.main:hover { background: none; }
.main:focus-visible { outline-offset: -2px; }
.dot { width: 8px; height: 8px; margin-block-start: 6px; border-radius: 50%; }
.unread .dot { background: var(--_accent); }
.icon { width: 32px; height: 32px; border-radius: 8px; object-fit: cover; }
.words { grid-column: 3; min-width: 0; overflow-wrap: anywhere; }
.words > * { display: block; }
.name { font-weight: 500; }
.unread .name { font-weight: 650; }
.body { color: var(--_muted); display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; }
.image { max-width: 100%; max-height: 160px; margin-block-start: 6px; border-radius: 8px; }
time { color: var(--_muted); font-size: 12px; }
.side { display: flex; padding: 8px 4px; align-items: start; color: var(--_muted); }
.actions { grid-column: 1 / -1; display: flex; flex-wrap: wrap; gap: 8px; padding-block: 0 12px; padding-inline: 38px 12px; }
.actions a { padding: 4px 10px; border: 1px solid var(--_border); border-radius: 8px; text-decoration: none; color: var(--_accent); }
.choices { padding: 8px 16px 16px; overflow-y: auto; }
.choice { margin: 0 0 12px; border: 1px solid var(--_border); border-radius: 8px; }
.choice legend { font-weight: 600; }
.choices label { display: inline-flex; gap: 6px; align-items: center; padding: 4px 0; margin-inline-end: 16px; cursor: pointer; }
.end { height: 1px; }
.note { padding: 40px 24px; text-align: center; color: var(--_muted); margin: 0; }
.note svg { margin: 0 auto 12px; opacity: .6; }
.problem { display: flex; align-items: center; gap: 8px; padding: 8px 16px; background: light-dark(#fdecec, #45221f); color: light-dark(#7a1420, #ffd9d5); }
.problem span { flex: 1; }
.problem button { text-decoration: underline; }
.toast { display: flex; align-items: center; gap: 8px; padding: 8px 16px; border-block-start: 1px solid var(--_border); }
.toast span { flex: 1; }
.toast button { color: var(--_accent); font-weight: 600; }
.quiet { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.spin { width: 20px; height: 20px; margin: 16px auto; border: 2px solid var(--_border); border-block-start-color: var(--_accent); border-radius: 50%; animation: spin .8s linear infinite; }
@keyframes spin { to { transform: rotate(1turn); } }
@media (prefers-reduced-motion: reduce) { .spin { animation: none; } }
@media (max-width: 480px) {
  .panel { position: fixed; inset: 0; width: auto; max-height: none; border: 0; border-radius: 0; }
}
`;
