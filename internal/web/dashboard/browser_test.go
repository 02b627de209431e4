package dashboard_test

import (
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/internal/web/browsertest"
)

func copyTo(w io.Writer, res *http.Response) (int64, error) { return io.Copy(w, res.Body) }

var update = flag.Bool("update", false, "write the pictures of the documentation anew")

// pictures are those of the documentation.
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
		"dashboard-diff":         {"/p/shop/runs/r-396/diff?at=f1-a25", browsertest.Look{Width: 1180, Height: 640}},
	}
}

// The pictures show what there is: nothing wrong, nothing from elsewhere, nothing wider than the screen.
func TestPictures(t *testing.T) {
	t.Parallel()
	browser := browsertest.Open(t)
	f, live := shop(t)
	url := site(t, f, live)
	for name, c := range pictures() {
		p := browser.Page(t, c.look)
		p.Go(url + c.path)
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
