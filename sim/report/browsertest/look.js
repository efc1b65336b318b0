// look tells what there is to see on the page.
(() => {
	const figures = [...document.querySelectorAll("figure")];
	const style = e => getComputedStyle(e);

	// A colour as [red, green, blue, opacity], the first three from 0 to 255.
	const parts = color => { const n = color.match(/[\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
	// What is behind an element: the nearest background that is no glass.
	const behind = e => { for (; e; e = e.parentElement) { const c = parts(style(e).backgroundColor); if (c[3] === 1) return c; } return [255, 255, 255, 1]; };
	// The contrast of two colours, from 1 to 21, as WCAG 2 defines it.
	const light = c => { const [r, g, b] = c.slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };

	const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
	const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom;
	const box = e => e.getBoundingClientRect();

	// A line is drawn if it is long, has a colour that differs from what is behind, and has as many points as it needs.
	const drawn = p => p.getTotalLength() > 50 && box(p).width > 50 && style(p).stroke !== "none" && contrast(parts(style(p).stroke), behind(p)) > 2;
	const hasData = f => { const lines = [...f.querySelectorAll("path.line")]; return f.id === "faults" ? f.querySelectorAll(".lane .mark, .lane .band").length > 0 : lines.length > 0 && lines.every(drawn); };
	const texts = f => [...f.querySelectorAll("svg.chart text")].filter(t => t.textContent);

	const words = [...document.querySelectorAll("h1, h2, h3, p, td, th, b, span, summary, footer, svg text")].filter(e => e.textContent.trim() && box(e).width > 0);
	const ink = e => parts(e.closest("svg") ? style(e).fill : style(e).color);

	return {
		charts: figures.map(f => f.id),
		withData: figures.filter(hasData).map(f => f.id),
		unlabelled: figures.filter(f => !f.querySelector("svg.chart[role=img]")?.getAttribute("aria-label")).map(f => f.id),
		cutOff: figures.flatMap(f => texts(f).filter(t => !inside(box(t), box(f))).map(t => f.id + ": " + t.textContent)),
		overlapping: figures.flatMap(f => texts(f).flatMap((t, i, all) => all.slice(i + 1).filter(u => overlap(box(t), box(u))).map(u => f.id + ": " + t.textContent + " and " + u.textContent))),
		faint: words.filter(e => contrast(ink(e), behind(e)) < 4.5).map(e => e.textContent.trim().slice(0, 40)),
		faults: document.querySelectorAll("figure:not(#faults) .mark, figure:not(#faults) .band").length,
		highRows: [...document.querySelectorAll("td")].filter(e => box(e).height > 90).map(e => e.textContent.slice(0, 40)),
		clipped: [...document.querySelectorAll(".table")].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.getAttribute("aria-label")),
		overflow: document.documentElement.scrollWidth > document.documentElement.clientWidth,
		badge: document.querySelector(".badge")?.textContent ?? "",
		assertions: [...document.querySelectorAll("[aria-label=Assertions] tbody tr, [aria-label=Assertions] tr")].filter(r => r.querySelector(".holds, .failed")).length,
		hiddenVerdicts: [...document.querySelectorAll("[aria-label=Assertions] .holds, [aria-label=Assertions] .failed")].filter(e => box(e).right > box(e.closest(".table")).right).length,
		page: style(document.body).backgroundColor,
		text: style(document.body).color,
	};
})()
