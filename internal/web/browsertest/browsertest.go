// Package browsertest drives Chromium in tests of pages.
package browsertest

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Required is the environment variable that makes a missing browser a failure.
const Required = "RALPH_TEST_BROWSER"

// patience is the time limit of a step: longer than any step takes, so that only a test that hangs fails.
const patience = 2 * time.Minute

// Browser is a Chromium with its own profile.
type Browser struct{ ctx context.Context }

// Open starts Chromium and closes it when the test ends. Without Chromium it skips the test, or fails it if Required is set.
func Open(t *testing.T) Browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	switch {
	case path == "" && os.Getenv(Required) != "":
		t.Fatal("there is no Chromium: apt-get install chromium")
	case path == "":
		t.Skip("there is no Chromium, so pages are not tested: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("disable-dev-shm-usage",
			true), chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("font-render-hinting", "none"),
		chromedp.Flag("no-proxy-server", true),
	)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() { cancel(); stop() })
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return Browser{ctx}
}

// Look is the appearance of a page.
type Look struct {
	Width, Height int64
	Dark          bool
	NoScript      bool
}

// Page is a tab. It records errors.
type Page struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string // guarded by mu
	hosts    []string // guarded by mu
}

// Page opens a tab and closes it when the test ends.
func (b Browser) Page(t *testing.T, look Look) *Page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	t.Cleanup(cancel)
	p := &Page{t: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	if err := chromedp.Listen(ctx, p.recordEvent); err != nil {
		t.Fatal(err)
	}
	theme := "light"
	if look.Dark {
		theme = "dark"
	}
	for _, err := range []error{
		call(ctx, network.Enable, network.EnableParams{}), call(ctx, log.Enable, cdp.Empty{}), call(ctx, runtime.Enable, cdp.Empty{}),
		call(ctx, page.Enable, page.EnableParams{}),
		call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}}),
		call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: look.Width, Height: look.Height, DeviceScaleFactor: 1, Mobile: look.Width < 600,
		}),
		call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: look.NoScript}),
	} {
		if err != nil {
			t.Fatalf("open a tab: %v", err)
		}
	}
	return p
}

func call[P, R any](ctx context.Context, command cdp.Command[P, R], params P) error {
	_, err := chromedp.Call(ctx, command, params)
	return err
}

func (p *Page) recordEvent(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *page.EventJavascriptDialogOpening:
		p.problems = append(p.problems, "a dialog: "+e.Message)
		go func() { _ = call(p.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}) }()
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, "an exception: "+e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Source == "security" {
			p.problems = append(p.problems, "the console: "+e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "data" {
			p.hosts = append(p.hosts, u.Host)
		}
	}
}

// Wrong lists exceptions, console errors (such as violations of the content security policy) and pop-ups.
func (p *Page) Wrong() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.problems...)
}

// Elsewhere lists the hosts that the page contacted, except its own.
func (p *Page) Elsewhere(own string) (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.hosts {
		if !strings.HasSuffix(own, "/"+h) {
			out = append(out, h)
		}
	}
	return out
}

// Do runs steps.
func (p *Page) Do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	for _, step := range steps {
		run(p, step)
	}
}

// run runs a step and returns its value.
func run[T any](p *Page, step chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, step)
	if err != nil {
		p.t.Fatalf("in Chromium: %v; %q", err, p.Wrong())
	}
	return value
}

// Go opens a page.
func (p *Page) Go(to string) {
	p.t.Helper()
	p.Do(chromedp.Navigate(to))
}

// Eval returns the value of an expression.
func Eval[T any](p *Page, expression string) T {
	p.t.Helper()
	return run(p, chromedp.Evaluate[T](expression))
}

// Until waits until an expression is true. Errors count as false, because the page may still be loading.
func (p *Page) Until(expression string) {
	p.t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(patience); !Eval[bool](p, "(() => { try { return Boolean("+
		expression+") } catch { return false } })()"); <-ticker.C {
		if time.Now().After(end) {
			p.t.Fatalf("in Chromium: %s is never true; %q", expression, p.Wrong())
		}
	}
}

// Picture returns a screenshot as PNG.
func (p *Page) Picture() []byte {
	p.t.Helper()
	return run(p, chromedp.CaptureScreenshot())
}
