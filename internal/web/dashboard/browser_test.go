package dashboard_test

import (
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ralph-pool/ralph/internal/web/browsertest"
	"github.com/ralph-pool/ralph/pool/journal"
)

var update = flag.Bool("update", false, "write the pictures of the documentation anew")

// TestBrowser tests the pages in Chromium.
func TestBrowser(t *testing.T) {
	t.Parallel()
	browser := browsertest.Open(t)
	for name, test := range map[string]func(*testing.T, browsertest.Browser){
		"Pictures": testPictures, "Outline": testOutline, "Keyboard": testKeyboard, "WithoutScripts": testWithoutScripts, "BoardIsLive": testBoardIsLive,
		"Frames": testFrames, "HostileText": testHostileText,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, browser)
		})
	}
}

// pictures are the pictures in the documentation.
func pictures() map[string]struct {
	path string
	look browsertest.Look
} {
	type picture = struct {
		path string
		look browsertest.Look
	}
	return map[string]picture{
		"dashboard-board":        {"/p/shop", browsertest.Look{Width: 1180, Height: 820}},
		"dashboard-board-dark":   {"/p/shop", browsertest.Look{Width: 1180, Height: 820, Dark: true}},
		"dashboard-board-phone":  {"/p/shop", browsertest.Look{Width: 360, Height: 740}},
		"dashboard-run":          {"/p/shop/runs/r-396", browsertest.Look{Width: 1180, Height: 940}},
		"dashboard-run-dark":     {"/p/shop/runs/r-396", browsertest.Look{Width: 1180, Height: 940, Dark: true}},
		"dashboard-run-phone":    {"/p/shop/runs/r-396", browsertest.Look{Width: 360, Height: 740}},
		"dashboard-charts":       {"/p/shop/charts", browsertest.Look{Width: 1180, Height: 820}},
		"dashboard-charts-dark":  {"/p/shop/charts", browsertest.Look{Width: 1180, Height: 820, Dark: true}},
		"dashboard-charts-phone": {"/p/shop/charts", browsertest.Look{Width: 360, Height: 740}},
		"dashboard-diff":         {"/p/shop/runs/r-396/diff?at=f1-a25#comment", browsertest.Look{Width: 1180, Height: 640}},
	}
}

// The pictures have no errors, no requests to other hosts, and nothing wider than the screen.
func testPictures(t *testing.T, browser browsertest.Browser) {
	f, live := shop(t)
	url := site(t, f, live)
	for name, c := range pictures() {
		p := browser.Page(t, c.look)
		p.Go(url + c.path)
		p.Until("!document.body.textContent.includes('being ')") // being read, being added up
		if wide := browsertest.Eval[int64](p, "document.documentElement.scrollWidth"); wide > c.look.Width {
			t.Errorf("%s is %d wide", name, wide)
		}
		if wrong := p.Wrong(); len(wrong) > 0 {
			t.Errorf("%s: %q", name, wrong)
		}
		if hosts := p.Elsewhere(url); len(hosts) > 0 {
			t.Errorf("%s asks %q", name, hosts)
		}
		picture := p.Picture()
		if *update {
			if len(picture) > 150_000 {
				t.Errorf("%s takes %d bytes", name, len(picture))
			}
			if err := os.WriteFile(filepath.Join("..", "..", "..", "docs", name+".png"), picture, 0o644); err != nil {
				t.Error(err)
			}
		}
	}
}

func escaped(s string) string { return url.PathEscape(s) }

// outline returns the defects of a page's structure.
const outline = `(() => {
	const wrong = [];
	const all = (s) => [...document.querySelectorAll(s)];
	const name = (e) => (e.getAttribute("aria-label") || (e.getAttribute("aria-labelledby") || "").split(" ").map((id) => document.getElementById(id)?.textContent || "").join("") || e.textContent || e.alt || "").trim();
	if (document.documentElement.lang !== "en" || !document.title) wrong.push("language or title");
	for (const s of ["main", "body > header", "body > footer", "h1"]) if (all(s).length !== 1) wrong.push(s + ": " + all(s).length);
	let level = 0;
	for (const h of all("h1, h2, h3, h4")) { const n = Number(h.tagName[1]); if (n > level + 1) wrong.push("heading " + h.textContent + " skips a level"); level = n; if (!h.textContent.trim()) wrong.push("an empty heading"); }
	for (const e of all("a, button, summary, [role=region], [role=group], [role=img], nav, section")) if (!name(e)) wrong.push("no name: " + e.outerHTML.slice(0, 80));
	for (const e of all("input:not([type=hidden]), textarea, select")) if (!e.labels.length) wrong.push("no label: " + e.outerHTML);
	for (const e of all("img")) if (!e.hasAttribute("alt")) wrong.push("no alternative: " + e.outerHTML);
	for (const e of all("svg")) if (!e.hasAttribute("aria-hidden") && e.getAttribute("role") !== "img") wrong.push("a drawing without a role");
	for (const e of all("table")) if (!e.querySelector("thead th[scope=col]")) wrong.push("a table without headers");
	for (const e of all("th")) if (!e.scope || !e.textContent.trim()) wrong.push("a header without scope or text: " + e.outerHTML.slice(0, 80));
	for (const e of all("figure")) if (!document.querySelector("details table")) wrong.push("a chart without a table");
	const marks = all("section, nav, [role=region], [role=search]").map((e) => (e.tagName === "SECTION" ? "region" : e.tagName) + " " + name(e));
	for (const m of marks) if (marks.indexOf(m) !== marks.lastIndexOf(m)) wrong.push("a landmark twice: " + m);
	for (const e of all("p a, h1 a, h2 a, footer a")) if (!e.closest("nav") && getComputedStyle(e).textDecorationLine !== "underline") wrong.push("a link that only its colour shows: " + e.outerHTML);
	for (const e of all("button, summary, .no a")) if (e.getBoundingClientRect().height > 0 && e.getBoundingClientRect().height < 24) wrong.push("too low for a finger: " + e.outerHTML);
	const ids = all("[id]").map((e) => e.id);
	for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push("id " + id + " twice");
	for (const e of all("[aria-labelledby]")) if (!document.getElementById(e.getAttribute("aria-labelledby"))) wrong.push("aria-labelledby leads nowhere");
	for (const e of all("a[href^='#']")) if (!document.getElementById(e.hash.slice(1))) wrong.push("a link to nothing: " + e.hash);
	return wrong.join("\n");
})()`

// Pages have landmarks, ordered headings, labels, and tables with headers, and fit on a phone.
func testOutline(t *testing.T, browser browsertest.Browser) {
	f, live := shop(t)
	url := site(t, f, live)
	for _, path := range []string{"/", "/p/shop", "/p/shop?state=left-out", "/p/shop/runs", "/p/shop/runs/r-396", "/p/shop/runs/r-396/log", "/p/shop/runs/r-396/log?q=test", "/p/shop/runs/r-396/diff?at=f1-a25", "/p/shop/charts", "/p/none"} {
		p := browser.Page(t, browsertest.Look{Width: 320, Height: 740})
		p.Go(url + path)
		if wrong := browsertest.Eval[string](p, outline); wrong != "" {
			t.Errorf("%s:\n%s", path, wrong)
		}
		if wide := browsertest.Eval[int64](p, "document.documentElement.scrollWidth"); wide > 320 {
			t.Errorf("%s is %d wide on a phone", path, wide)
		}
		if cut := browsertest.Eval[string](p, `[...document.querySelectorAll("table")].filter((e) => e.checkVisibility() && e.scrollWidth > e.parentElement.clientWidth).map((e) => [e.scrollWidth, e.parentElement.clientWidth, e.textContent.slice(0, 60)].join(" ")).join("\n")`); cut != "" {
			t.Errorf("%s: a phone cuts\n%s", path, cut)
		}
	}
}

// The keyboard reaches everything, and the focus is visible.
func testKeyboard(t *testing.T, browser browsertest.Browser) {
	f, live := shop(t)
	url := site(t, f, live)
	for _, path := range []string{"/p/shop", "/p/shop/runs/r-396"} {
		p := browser.Page(t, browsertest.Look{Width: 1000, Height: 800})
		p.Go(url + path)
		p.Until("!document.body.textContent.includes('is being read')")
		p.Do(chromedp.KeyEvent(kb.Tab))
		if at := browsertest.Eval[string](p, "document.activeElement.textContent + document.activeElement.getBoundingClientRect().height"); !strings.HasPrefix(at, "Skip to content") || strings.HasSuffix(at, "t1") {
			t.Errorf("%s: first comes %q", path, at)
		}
		const focusable = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), textarea, summary, [tabindex='0']")].filter((e) => e.checkVisibility())`
		reached := map[string]bool{}
		for range browsertest.Eval[int](p, focusable+".length") {
			at := browsertest.Eval[string](p, `(() => { const e = document.activeElement, s = getComputedStyle(e); return `+focusable+`.indexOf(e) + " " + s.outlineStyle + " " + s.outlineWidth })()`)
			if !strings.HasSuffix(at, " solid 2px") {
				t.Errorf("%s: the focus is not seen: %s", path, at)
			}
			reached[at] = true
			p.Do(chromedp.KeyEvent(kb.Tab))
		}
		if want := browsertest.Eval[int](p, focusable+".length"); len(reached) != want {
			t.Errorf("%s: %d of %d are reached", path, len(reached), want)
		}
	}
	p := browser.Page(t, browsertest.Look{Width: 1000, Height: 800})
	p.Go(url + "/p/shop")
	p.Do(chromedp.Focus(chromedp.CSS(`[aria-label="Retry 397"]`)), chromedp.KeyEvent(kb.Enter))
	f.wait(1)
	if asked := f.Asked(); len(asked) != 1 || asked[0] != "retry shop 397 false" {
		t.Errorf("asked %q", asked)
	}
}

// Without scripts all content is there, and buttons work.
func testWithoutScripts(t *testing.T, browser browsertest.Browser) {
	f, live := shop(t)
	url := site(t, f, live)
	p := browser.Page(t, browsertest.Look{Width: 1000, Height: 800, NoScript: true})
	p.Go(url + "/p/shop/runs/r-396/diff")
	p.Do(chromedp.Click(chromedp.CSS(`#f1-a25 a`)), chromedp.WaitVisible(chromedp.CSS("#comment")))
	p.Until("document.activeElement.id === 'comment'")
	if y := browsertest.Eval[float64](p, "document.getElementById('f1-a25').getBoundingClientRect().top"); y < 0 {
		t.Errorf("the line is %v above what is in sight", y)
	}
	p.Do(chromedp.KeyEvent("Compare <what> it takes off"), chromedp.Click(chromedp.CSS(".comment button")))
	f.wait(1)
	p.Until("location.pathname === '/p/shop' && document.readyState === 'complete'")
	if asked := f.Asked(); len(asked) != 1 || asked[0] != `fix shop 396 In "cart/merge.go", line 25: Compare <what> it takes off` {
		t.Errorf("asked %q", asked)
	}
	p.Go(url + "/p/shop")
	for _, want := range []string{"iteration 2", "$0.87", "TestVoucher", "waits for an answer", "Upgrade the SQL driver"} {
		if text := browsertest.Eval[string](p, "document.body.textContent"); !strings.Contains(text, want) {
			t.Errorf("no %q on the board", want)
		}
	}
	p.Do(chromedp.Click(chromedp.CSS(`[aria-label="Stop 412"]`)))
	f.wait(2)
	if asked := f.Asked(); asked[len(asked)-1] != "stop shop 412 r-412" {
		t.Errorf("asked %q", asked)
	}
}

// A board shows the progress of runs live, and keeps the keyboard focus.
func testBoardIsLive(t *testing.T, browser browsertest.Browser) {
	f, live := shop(t)
	p := browser.Page(t, browsertest.Look{Width: 1000, Height: 800})
	p.Go(site(t, f, live) + "/p/shop")
	p.Until("!document.body.textContent.includes('is being read')")
	p.Do(chromedp.Focus(chromedp.CSS(`[aria-label="Stop 418"]`)))
	live.Observe("shop", journal.Event{Kind: journal.EventAgent, Run: "r-412", Text: "Edit <cart.go>"})
	p.Until("document.querySelector('[data-run=r-412] [data-field=last]').textContent === 'Edit <cart.go>'")
	f.mu.Lock()
	f.status.Running = f.status.Running[1:]
	f.mu.Unlock()
	p.Until("!document.querySelector('[data-run=r-412]')")
	if at := browsertest.Eval[string](p, "document.activeElement.getAttribute('aria-label')"); at != "Stop 418" {
		t.Errorf("the focus is at %q", at)
	}
	if wrong := p.Wrong(); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
}

// A page inside a frame of another site is not shown.
func testFrames(t *testing.T, browser browsertest.Browser) {
	f, live := shop(t)
	board := site(t, f, live) + "/p/shop"
	around := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<title>around</title><iframe src="`+board+`"></iframe>`)
	}))
	t.Cleanup(around.Close)
	p := browser.Page(t, browsertest.Look{Width: 1000, Height: 800})
	p.Go(around.URL)
	if wrong := strings.Join(p.Wrong(), " "); !strings.Contains(wrong, "frame-ancestors 'none'") {
		t.Errorf("the frame was not refused: %q", wrong)
	}
}
