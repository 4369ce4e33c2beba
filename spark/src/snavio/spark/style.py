"""The looks of a report page."""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--ink:#1d2530;--soft:#5d6b7c;--line:#e2e7ee;--card:#fff;--back:#f4f6f9;
--fast:#2f6fde;--slow:#e09a2d;--bad:#d24a43;--p50:#58a6a0;--p95:#7a6fd0;--p99:#c4477f;--good:#2c8a57}
@media(prefers-color-scheme:dark){:root{--ink:#e6ebf2;--soft:#93a1b3;--line:#2b3542;--card:#171e27;--back:#0f141b;
--fast:#5b93f5;--slow:#e8b04f;--bad:#ea6a62;--p50:#6cc0b8;--p95:#9d93f0;--p99:#e069a0;--good:#55b884}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:15px/1.5 system-ui,"Segoe UI",Roboto,sans-serif}
header,main,footer{max-width:1180px;margin:0 auto;padding:0 20px}
header{display:flex;align-items:baseline;gap:14px;padding-top:26px}
h1{font-size:24px;letter-spacing:-.02em;margin:0}h2{font-size:15px;margin:0 0 10px}
header p,footer,.note,small{color:var(--soft)}header p{margin:0}
.tiles{margin:16px 0 8px!important}section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:18px 20px;margin:16px 0;min-width:0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(180px,1fr));gap:14px;background:none;border:0;padding:0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:14px 16px}
.tile span{color:var(--soft);font-size:13px}.tile small{font-size:12.5px}
.tile strong{display:block;font-size:27px;line-height:1.25;letter-spacing:-.02em;font-variant-numeric:tabular-nums}
.pair>section{margin:8px 0}.pair{margin:8px 0;display:grid;grid-template-columns:repeat(auto-fit,minmax(430px,1fr));gap:0 16px}
svg{display:block;width:100%;height:auto;max-width:100%}
svg text{font-size:12px;fill:var(--soft);font-variant-numeric:tabular-nums}svg text.name{fill:var(--ink)}
.grid{stroke:var(--line)}.line{fill:none!important;stroke-width:2;stroke-linejoin:round}
.fast{fill:var(--fast);stroke:none}.slow{fill:var(--slow)}.bad{fill:var(--bad)}
.p50{fill:var(--p50);stroke:var(--p50)}.p95{fill:var(--p95);stroke:var(--p95)}.p99{fill:var(--p99);stroke:var(--p99)}
.legend{display:flex;gap:16px;margin:-4px 0 8px;font-size:13px;color:var(--soft)}
.legend i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px}
i.fast{background:var(--fast)}i.slow{background:var(--slow)}i.bad{background:var(--bad)}
i.p50{background:var(--p50)}i.p95{background:var(--p95)}i.p99{background:var(--p99)}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:14px;margin-top:6px}
th{font-weight:500;color:var(--soft);text-align:left;font-size:12.5px}
th,td{padding:6px 10px 6px 0;border-bottom:1px solid var(--line);white-space:nowrap}tbody tr:last-child td{border:0}
.n{text-align:right;font-variant-numeric:tabular-nums}
summary{cursor:pointer;color:var(--soft);margin-top:10px;font-size:14px}
.note{font-size:13px;margin:10px 0 0}.good{color:var(--good);margin:0}.warn{color:var(--bad);margin:0 0 8px}
footer{font-size:13px;padding-top:4px;padding-bottom:40px}
@media print{body{background:#fff}section,.tile{break-inside:avoid}}
"""
