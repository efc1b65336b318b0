(() => {
  document.querySelectorAll("details").forEach(d => { d.open = true; });
  const section = document.querySelector("[data-engine]");
  const rows = [...section.querySelectorAll("table.watches tbody tr")];
  const parse = c => (c.match(/[\d.]+/g) || []).map(Number);
  const light = c => {
    const [r, g, b] = parse(c).slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = e => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (c !== "transparent" && parse(c)[3] !== 0) return c;
    }
    return "rgb(255, 255, 255)";
  };
  const faint = [];
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length) continue;
    const a = light(getComputedStyle(e).color), b = light(ground(e));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faint.push(e.textContent.slice(0, 40) + ": " + contrast.toFixed(2));
  }
  return {
    First: section.dataset.engine,
    Watches: rows.map(r => r.cells[0].textContent),
    Marked: rows.filter(r => r.classList.contains("slow")).map(r => r.cells[0].textContent),
    Behind: rows.length ? rows[0].cells[2].textContent : "",
    Charts: [...document.querySelectorAll("polyline")].filter(l => l.getAttribute("points").split(" ").length > 1).length,
    Faint: faint,
    Overflow: document.documentElement.scrollWidth > innerWidth,
    Status: document.getElementById("status").textContent,
    Text: document.body.innerText,
  };
})()
