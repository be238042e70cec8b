/** The one style sheet of the page: calm, light and dark, from 320 pixels up. */
export const STYLE = `
:root{color-scheme:light dark;--paper:#fbfaf7;--raised:#fff;--ink:#1d2622;--soft:#56625c;--line:#dedcd4;--code:#f3f2ec;--accent:#0b6b4f;--accent-soft:#e4f1eb;--warn:#8a4b08;--warn-soft:#fdf1df;--mono:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
@media (prefers-color-scheme:dark){:root{--paper:#121614;--raised:#191e1b;--ink:#e7ebe8;--soft:#a3afa8;--line:#303833;--code:#1b211e;--accent:#74d3ab;--accent-soft:#173329;--warn:#f0b76a;--warn-soft:#33260f}}
*,*::before,*::after{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
header,main,footer{max-width:68rem;margin:0 auto;padding:0 clamp(1rem,4vw,2.5rem)}
header{display:flex;flex-wrap:wrap;justify-content:space-between;align-items:center;gap:.25rem 2rem;padding-top:1.5rem;padding-bottom:1.25rem}
.brand{display:flex;align-items:center;gap:.6rem;margin:0;font-weight:650;letter-spacing:-.01em}
.brand svg{width:1.35rem;height:1.35rem;fill:var(--accent)}
.brand path+path{fill:none;stroke:var(--paper);stroke-width:3}
.state{display:flex;flex-wrap:wrap;gap:0 1.25rem;margin:0;color:var(--soft);font-size:.875rem;font-variant-numeric:tabular-nums}
.mode{color:var(--accent);font-weight:600}
.mode::before{content:"";display:inline-block;width:.5em;height:.5em;margin-right:.5em;border-radius:50%;background:currentColor}
h1{margin:0;max-width:20ch;font-size:clamp(1.9rem,1.2rem + 3vw,3.1rem);line-height:1.12;font-weight:680;letter-spacing:-.025em;text-wrap:balance}
h2{margin:0;font-size:1.2rem;line-height:1.3;font-weight:650;letter-spacing:-.01em}
p{margin:0 0 1rem;max-width:66ch;text-wrap:pretty}
a{color:var(--accent);text-decoration-thickness:1px;text-underline-offset:.2em}
a:hover{text-decoration-thickness:2px}
:focus-visible{outline:2px solid var(--accent);outline-offset:3px;border-radius:4px}
code{font-family:var(--mono);font-size:.9em;overflow-wrap:anywhere}
.intro{padding:clamp(1.5rem,5vw,3.5rem) 0 0}
.lead{margin:1.25rem 0 0;font-size:clamp(1.05rem,1rem + .4vw,1.25rem);color:var(--soft);max-width:60ch}
.lead:last-child{margin-bottom:2.5rem}
.lead code{color:var(--ink)}
section{border-top:1px solid var(--line);padding:2.5rem 0 1.75rem}
.content{min-width:0;margin-top:1rem}
.flow{margin:2.5rem 0 3rem}
.flow svg{display:block;width:100%;height:auto}
.flow .narrow{max-width:22rem;margin:0 auto}
.flow .wide{display:none}
.flow rect{fill:var(--raised);stroke:var(--line);stroke-width:1.5}
.flow .mirror>rect{stroke:var(--accent);stroke-width:2}
.flow text{fill:var(--soft);font-size:14px;text-anchor:middle}
.flow .title{fill:var(--ink);font-size:17px;font-weight:650}
.flow path{fill:none;stroke:var(--soft);stroke-width:1.5;stroke-linecap:round;stroke-linejoin:round}
.flow .safe path{stroke:var(--accent);stroke-width:2}
.flow .safe text,.flow .check text{fill:var(--accent)}
.flow .check rect{fill:var(--accent-soft);stroke:none}
.flow .check text{text-anchor:start;font-size:13.5px}
.flow .shield,.flow .tick{stroke:var(--accent);stroke-width:1.8}
.choices{display:flex;flex-wrap:wrap;gap:1rem 2rem;margin:1.5rem 0 1rem}
.choice{border:0;margin:0;padding:0;min-width:0}
.choice legend{padding:0;margin-bottom:.4rem;font-size:.875rem;color:var(--soft)}
.options{display:flex;flex-wrap:wrap;gap:.25rem;padding:.25rem;border:1px solid var(--line);border-radius:10px;background:var(--code)}
.options label{position:relative;flex:1 1 auto;text-align:center;cursor:pointer}
.options input{position:absolute;inset:0;width:100%;height:100%;margin:0;opacity:0;cursor:pointer}
.options span{display:block;padding:.35rem .8rem;border-radius:7px;font-size:.9375rem;color:var(--soft)}
.options label:hover span{color:var(--ink)}
.options input:checked+span{background:var(--raised);color:var(--ink);font-weight:600;box-shadow:0 0 0 1px var(--line)}
.options input:focus-visible+span{outline:2px solid var(--accent);outline-offset:1px}
.about{color:var(--soft)}
.code{margin:0 0 1.25rem;border:1px solid var(--line);border-radius:10px;background:var(--code);overflow:hidden}
.code figcaption{display:flex;justify-content:space-between;align-items:center;gap:1rem;min-height:2.75rem;padding:.25rem .5rem .25rem 1rem;border-bottom:1px solid var(--line);font-size:.875rem;color:var(--soft)}
.code pre{margin:0;padding:1rem;white-space:pre-wrap;font-size:.875rem;line-height:1.65}
.code pre code{font-size:1em}
.code i{font-style:normal;color:var(--soft)}
button{flex:none;min-width:5.2rem;min-height:2.25rem;padding:.3rem .8rem;border:1px solid var(--line);border-radius:7px;background:var(--raised);color:var(--ink);font:inherit;font-size:.875rem;cursor:pointer;transition:border-color .15s,color .15s}
button:hover{border-color:var(--accent);color:var(--accent)}
button[hidden]{display:none}
.note{color:var(--soft);font-size:.9375rem}
.download{display:inline-block;padding:.5rem 1rem;border:1px solid var(--accent);border-radius:8px;font-weight:600;text-decoration:none}
.download:hover{background:var(--accent-soft)}
.fingerprint{padding-left:1rem;border-left:3px solid var(--accent);font-size:.9375rem}
.origins{list-style:none;margin:0 0 1rem;padding:0;border-top:1px solid var(--line)}
.origins li{display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 2rem;padding:.6rem 0;border-bottom:1px solid var(--line)}
.origins span{color:var(--soft);font-size:.9375rem}
.notice{margin-top:1rem;padding:1rem 1.25rem;border:1px solid var(--warn);border-radius:10px;background:var(--warn-soft)}
.notice p{margin:0}
.notice strong{color:var(--warn)}
footer{padding-bottom:3rem;color:var(--soft);font-size:.9375rem}
footer nav{display:grid;gap:1.25rem 3rem;border-top:1px solid var(--line);padding:2rem 0 1.5rem}
footer h2{font-size:.875rem;color:var(--soft);font-weight:600;letter-spacing:0}
footer ul{display:flex;flex-wrap:wrap;gap:.25rem 1.5rem;list-style:none;margin:.4rem 0 0;padding:0}
footer p{margin:0}
.skip{position:absolute;left:1rem;top:-4rem;padding:.5rem 1rem;background:var(--raised);border-radius:8px;z-index:1}
.skip:focus{top:.5rem}
.unseen{position:absolute;width:1px;height:1px;margin:-1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
@media (max-width:30rem){.code pre{padding:.85rem;font-size:.8125rem}}
@media (min-width:44rem){.flow .narrow{display:none}.flow .wide{display:block}}
@media (min-width:60rem){footer nav{grid-template-columns:1fr auto}section{display:grid;grid-template-columns:13rem minmax(0,1fr);gap:0 3rem}.content{margin-top:0}}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}*{transition:none!important}}
@media print{button,.skip,.choices{display:none}}
`
