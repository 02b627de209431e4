package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/web/dashboard"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// get requests a page.
func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res := send(t, r)
	return res.status, res.body
}

type answer struct {
	status int
	header http.Header
	body   string
}

// form returns the secret that forms send.
func form(t *testing.T, site string) string {
	t.Helper()
	_, body := get(t, site+"/p/shop")
	found := regexp.MustCompile(`name="form" value="(\w+)"`).FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("there is no form in\n%s", body)
	}
	return found[1]
}

func post(t *testing.T, to string, values url.Values, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(values.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	return send(t, r)
}

// Every page has a content security policy that forbids frames. Unknown pages are not found.
func TestPages(t *testing.T) {
	t.Parallel()
	f, live := shop(t)
	site := site(t, f, live)
	for path, want := range map[string]int{
		"/": 200, "/p/shop": 200, "/p/shop?state=ready": 200, "/p/shop?state=none&page=7": 200, "/p/shop/runs": 200, "/p/shop/runs?page=3": 200,
		"/p/shop/runs?page=-1": 200, "/p/shop/runs?page=99999999999999999999": 200, "/p/shop/runs?issue=396": 200, "/p/shop/charts": 200,
		"/p/shop/charts?days=7": 200, "/p/shop/charts?days=many": 200, "/p/shop/runs/r-396": 200, "/p/shop/runs/r-00001": 200,
		"/p/shop/runs/r-396/log": 200, "/p/shop/runs/r-396/log?q=voucher": 200, "/p/shop/runs/r-396/log?at=-5": 200,
		"/p/shop/runs/r-396/log?before=300": 200, "/p/shop/runs/r-396/log?file=../../etc/passwd": 404, "/p/shop/runs/r-396/diff": 200,
		"/p/none": 404, "/p/shop/runs/none": 404, "/p/none/runs": 404, "/p/none/charts": 404, "/p/shop/runs/none/diff": 404, "/p/shop/runs/none/log": 404,
		"/p/shop/nosuch": 404, "/p/shop/": 404, "/p/shop/runs/r-396/nosuch": 404, "/p/": 404,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res := send(t, r)
		if res.status != want || !strings.Contains(res.body, "</html>") {
			t.Errorf("%s: %d, want %d\n%s", path, res.status, want, res.body)
		}
		policy := res.header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") || res.header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: policy %q, %v", path, policy, res.header)
		}
		if inline := regexp.MustCompile(`(?i)\sstyle=|\son\w+=|<style|javascript:|<script>`).FindString(res.body); inline != "" {
			t.Errorf("%s has %q", path, inline)
		}
	}
}

// For an agent that reports no tokens, no count is shown instead of zero.
func TestNoTokens(t *testing.T) {
	t.Parallel()
	f, live := shop(t)
	r := journal.Record{Run: journal.Run{ID: "untold", Kind: journal.KindIssue, Key: "1", Dir: t.TempDir(), Started: time.Now()}}
	r.Ended, r.Facts.Iterations = time.Now(), []loop.Iteration{{Number: 1, Agent: "command"}}
	if err := f.Save(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if _, page := get(t, site(t, f, live)+"/p/shop/runs/untold"); strings.Contains(page, "0 in, 0 out") || !strings.Contains(page, ">command</td>") {
		t.Errorf("tokens of nobody:\n%s", page)
	}
}

// The page of a run links to its raw streams, even if the whole log is on the page.
func TestRawStreamsAreLinked(t *testing.T) {
	t.Parallel()
	f, live := shop(t)
	_, page := get(t, site(t, f, live)+"/p/shop/runs/r-396")
	if strings.Contains(page, "Earlier lines") || !strings.Contains(page, `<a href="/p/shop/runs/r-396/log">`) {
		t.Errorf("no link to the streams:\n%s", page)
	}
	if !strings.Contains(page, "<span>succeeded</span>") {
		t.Errorf("the end of the log:\n%s", page[strings.Index(page, `id="log"`):])
	}
}

// Only a form of these pages has an effect, and its response redirects to no other site.
func TestForms(t *testing.T) {
	t.Parallel()
	f, live := shop(t)
	site := site(t, f, live)
	token := form(t, site)
	own := []string{"Origin: " + site, "Sec-Fetch-Site: same-origin"}
	for _, c := range []struct {
		path   string
		values url.Values
		want   string
	}{
		{"/p/shop/pause", nil, "pause shop true"},
		{"/p/shop/resume", nil, "pause shop false"},
		{"/p/shop/issues/412/stop", url.Values{"run": {"r-7"}}, "stop shop 412 r-7"},
		{"/p/shop/issues/397/retry", nil, "retry shop 397 false"},
		{"/p/shop/issues/a%2Fb/fresh", nil, "retry shop a/b true"},
		{"/p/shop/issues/396/fix", url.Values{"text": {"use a map"}}, "fix shop 396 use a map"},
		{"/p/shop/issues/396/fix", url.Values{"text": {" no "}, "file": {"a\nb.go"}, "line": {"7"}}, `fix shop 396 In "a b.go", line 7: no`},
	} {
		values := url.Values{"form": {token}, "back": {"/p/shop?state=ready"}}
		for k, v := range c.values {
			values[k] = v
		}
		res := post(t, site+c.path, values, own...)
		asked := f.Asked()
		if res.status != http.StatusSeeOther || res.header.Get("Location") != "/p/shop?state=ready" || asked[len(asked)-1] != c.want {
			t.Errorf("%s: %d to %q, asked %q", c.path, res.status, res.header.Get("Location"), asked)
		}
	}
	before := len(f.Asked())
	for _, c := range []struct {
		name    string
		form    string
		headers []string
	}{
		{"no form", "", own},
		{"another form", strings.Repeat("A", len(token)), own},
		{"a form that names no run", token, own},
		{"another site", token, []string{"Origin: http://evil.example"}},
		{"a page without an origin", token, []string{"Origin: null"}},
		{"another site's frame", token, []string{"Sec-Fetch-Site: cross-site"}},
		{"another port", token, []string{"Sec-Fetch-Site: same-site"}},
	} {
		if res := post(t, site+"/p/shop/issues/412/stop", url.Values{"form": {c.form}}, c.headers...); res.status != http.StatusForbidden {
			t.Errorf("%s: %d", c.name, res.status)
		}
	}
	if len(f.Asked()) != before {
		t.Errorf("asked %q", f.Asked()[before:])
	}
	f.fail = errors.New("the issue is <b>closed</b>\nand more")
	res := post(t, site+"/p/shop/issues/397/retry", url.Values{"form": {token}}, own...)
	if res.status != http.StatusConflict || !strings.Contains(res.body, "the issue is &lt;b&gt;closed&lt;/b&gt; (and 1 more)") {
		t.Errorf("what is refused: %d\n%s", res.status, res.body)
	}
	// A browser that opens the address of such a response again is redirected to the board.
	for _, path := range []string{"/pause", "/resume", "/issues/397/stop", "/issues/397/retry", "/issues/397/fresh", "/issues/397/fix"} {
		if status, body := get(t, site+"/p/shop"+path); status != http.StatusSeeOther || !strings.Contains(body, `href="/p/shop"`) {
			t.Errorf("%s: %d\n%s", path, status, body)
		}
	}
}

func TestLocal(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"/": "/", "/p/shop?x=1#y": "/p/shop?x=1#y", "": "/", "p": "/", "//evil.example": "/", `/\evil.example`: "/", "https://evil.example": "/", "/p\r\nX: y": "/", "/a\tb": "/", "/\u007f": "/",
	} {
		if got := dashboard.Local(to); got != want {
			t.Errorf("%q: %q, want %q", to, got, want)
		}
	}
}

// A page's stream has the activity of its runs, and a new digest when something else changes.
func TestChanges(t *testing.T) {
	t.Parallel()
	f, live := shop(t)
	pages, err := dashboard.New(dashboard.Config{Service: f, Live: live})
	if err != nil {
		t.Fatal(err)
	}
	changes := func() (digest, all string) {
		data, err := pages.Changes(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		digest, all, _ = strings.Cut(string(data), ",")
		return digest, all
	}
	first, _ := changes()
	for whole := len(first) + 16; len(first) < whole; first, _ = changes() { // until the backlog has been read
	}
	if _, all := changes(); !strings.Contains(all, `"phase":"iteration 2","last":"Bash go test ./cart/... -run TestVoucher","cost":"$0.87"`) {
		t.Errorf("runs: %s", all)
	}
	live.Observe("shop", journal.Event{Kind: journal.EventAgent, Run: "r-412", Text: "another"})
	if next, all := changes(); next != first || !strings.Contains(all, `"last":"another"`) {
		t.Errorf("after an action of the agent: %s, %s", next, all)
	}
	live.Observe("shop", journal.Event{Kind: journal.EventReview, Run: "r-412", Text: "claude: approved", Usage: &agents.Usage{Input: 1, CostUSD: 0.13}})
	if next, all := changes(); next != first || !strings.Contains(all, `"last":"claude: approved","cost":"$1.00"`) {
		t.Errorf("after a review: %s, %s", next, all)
	}
	live.Observe("shop", journal.Event{Kind: journal.EventEnded, Run: "r-412"})
	f.mu.Lock()
	f.status.Running = f.status.Running[1:]
	f.mu.Unlock()
	if next, all := changes(); next == first || strings.Contains(all, "r-412") {
		t.Errorf("after the end of a run: %s, %s", next, all)
	}
	if _, err := pages.Changes(t.Context(), "none"); !errors.Is(err, service.ErrNoProject) {
		t.Errorf("of no project: %v", err)
	}
}

// The page of a backlog of any length has a limited length.
func TestLongBacklog(t *testing.T) {
	t.Parallel()
	f, live := shop(t)
	f.board.Skipped = nil
	for i := range 5000 {
		f.board.Skipped = append(f.board.Skipped, backlog.Skipped{
			Issue: tracker.Issue{Key: fmt.Sprint("k", i), Title: strings.Repeat("t", 9000)}, Skip: journal.Skip{Code: journal.SkipUnfit, Unfit: tracker.Unfit{Code: tracker.UnfitTaken, Detail: strings.Repeat("d", 9000)}},
		})
	}
	site := site(t, f, live)
	body := ""
	for !strings.Contains(body, "All 5000") {
		_, body = get(t, site+"/p/shop")
	}
	if len(body) > 100<<10 {
		t.Errorf("the board takes %d bytes", len(body))
	}
	seen := map[string]bool{}
	for page := 1; page <= 100; page++ {
		_, body := get(t, fmt.Sprintf("%s/p/shop?state=left-out&page=%d", site, page))
		for _, m := range regexp.MustCompile(`"/p/shop/runs\?issue=(k\d+)"`).FindAllStringSubmatch(body, -1) {
			seen[m[1]] = true
		}
		if last := !strings.Contains(body, "Next page"); last != (page == 100) {
			t.Fatalf("page %d: last %t", page, last)
		}
	}
	if len(seen) != 5000 {
		t.Errorf("%d issues are on the pages", len(seen))
	}
}

// The link from an issue without runs leads to a page that says so.
func TestRunsOfAnIssueThatNeverRan(t *testing.T) {
	t.Parallel()
	f, live := shop(t)
	if _, body := get(t, site(t, f, live)+"/p/shop/runs?issue=never"); !strings.Contains(body, "No run of never yet.") {
		t.Error(body)
	}
}

func TestCharts(t *testing.T) {
	t.Parallel()
	var list []journal.Total
	for i := range int64(40) {
		list = append(list, journal.Total{Day: 100 - i, Agent: fmt.Sprint("agent-", i), Outcome: journal.Succeeded, Runs: 2, Usage: agents.Usage{CostUSD: 3}})
	}
	list = append(list, journal.Total{Day: 100, Agent: "agent-0", Runs: 5, Usage: agents.Usage{CostUSD: 4}})
	daily, groups, top := dashboard.Drawn(list, 7, 100)
	if fmt.Sprint(daily) != "[2 2 2 2 2 2 7]" || top != "$8" {
		t.Errorf("daily %v, top %s", daily, top)
	}
	if groups["Outcome succeeded"] != 14 || groups["Outcome not ended"] != 5 || groups["Agent agent-0"] != 7 || groups["Agent agent-7"] != 0 {
		t.Errorf("groups %v", groups)
	}
	if share, open, mean := dashboard.Ended(list, 1, 100); share != 100 || open != 5 || mean != 0 {
		t.Errorf("runs that have not ended: %d %%, %d, %s", share, open, mean)
	}
	if said, last := dashboard.Chart(1, list, 7, 100); !strings.Contains(said, " 14 in all, 2 at most") || !strings.HasSuffix(last, ": 2 succeeded 0 no-change 0 other") {
		t.Errorf("throughput: %s %s", said, last)
	}
	unchanged := append(slices.Clone(list), journal.Total{Day: 100, Agent: "agent-0", Outcome: journal.NoChange, Runs: 2})
	if share, _, _ := dashboard.Ended(unchanged, 1, 100); share != 50 {
		t.Errorf("%d %% succeeded, with two of four that changed nothing", share)
	}
	if _, last := dashboard.Chart(1, unchanged, 7, 100); !strings.HasSuffix(last, ": 2 succeeded 2 no-change 0 other") {
		t.Errorf("throughput: %s", last)
	}
	if _, _, top := dashboard.Drawn([]journal.Total{{Day: 100, Runs: 1, Usage: agents.Usage{CostUSD: 0.09}}}, 7, 100); top != "$0.10" {
		t.Errorf("the axis ends at %s", top)
	}
	if _, groups, _ := dashboard.Drawn(list, 30, 100); groups["Agent 19 others"] != 38 {
		t.Errorf("groups of many %v", groups)
	}
	if daily, _, top := dashboard.Drawn(nil, 30, 100); len(daily) != 30 || top != "$1" {
		t.Errorf("without runs: %v, %s", daily, top)
	}
}

// Charts of a journal that is slow to sum up appear at once: first without sums, then with known ones. Of these, only the
// latest days are computed again.
func TestSlowSums(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, live := shop(t)
		slow := &slowSums{fake: f}
		pages, err := dashboard.New(dashboard.Config{Service: slow, Live: live})
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		pages.Register(mux)
		look := func(reading bool) {
			t.Helper()
			began, w := time.Now(), httptest.NewRecorder()
			mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/p/shop/charts", nil))
			if text := w.Body.String(); time.Since(began) > 100*time.Millisecond || strings.Contains(text, "being added up") != reading || strings.Contains(text, `http-equiv="refresh"`) != reading {
				t.Errorf("after %s: %d, %s", time.Since(began), w.Code, text)
			}
		}
		look(true)
		time.Sleep(time.Second) //nolint:forbidigo // of the bubble's clock
		synctest.Wait()
		look(false)
		time.Sleep(2 * time.Minute) //nolint:forbidigo // of the bubble's clock
		look(false)
		synctest.Wait()
		time.Sleep(time.Second) //nolint:forbidigo // of the bubble's clock
		if len(slow.days) != 2 || slow.days[0] != 89 || slow.days[1] > 2 {
			t.Errorf("added up: %v days back", slow.days)
		}
	})
}

// slowSums takes a second to sum up runs.
type slowSums struct {
	*fake
	days []int64 // days back in each call
}

func (s *slowSums) Totals(ctx context.Context, name string, since time.Time) ([]journal.Total, error) {
	s.days = append(s.days, journal.Day(time.Now())-journal.Day(since))
	time.Sleep(time.Second) //nolint:forbidigo // of the bubble's clock
	return s.fake.Totals(ctx, name, since)
}

// colours returns the light and the dark palette.
func colours(t *testing.T) (light, dark map[string]string) {
	t.Helper()
	css, err := dashboard.Style()
	if err != nil {
		t.Fatal(err)
	}
	read := func(text string) map[string]string {
		out := map[string]string{}
		for _, m := range regexp.MustCompile(`--([\w-]+): (#[0-9a-f]{6})`).FindAllStringSubmatch(text, -1) {
			out[m[1]] = m[2]
		}
		return out
	}
	first, rest, _ := strings.Cut(css, "@media (prefers-color-scheme: dark)")
	second, rules, _ := strings.Cut(rest, "\n}\n")
	if colour := regexp.MustCompile(`#[0-9a-f]{3,6}\b`).FindString(rules); colour != "" {
		t.Errorf("%s is outside of the palette", colour)
	}
	return read(first), read(second)
}

func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(colour, err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

// WCAG 2.2, level AA requires a contrast of 4.5 for text and 3 for other visible parts.
func TestContrast(t *testing.T) {
	t.Parallel()
	light, dark := colours(t)
	if len(light) != len(dark) || len(light) < 25 {
		t.Fatalf("%d colours, and %d in the dark", len(light), len(dark))
	}
	pairs := map[string]float64{
		"text bg": 4.5, "text panel": 4.5, "text plain-bg": 4.5, "text hunk-bg": 4.5, "muted bg": 4.5, "muted panel": 4.5, "muted hunk-bg": 4.5,
		"accent bg": 4.5, "accent panel": 4.5, "accent hunk-bg": 4.5, "on-accent accent": 4.5, "add add-bg": 4.5, "del del-bg": 4.5, "hunk hunk-bg": 4.5,
		"control panel": 3, "control bg": 3, "bar panel": 3, "bar-ok panel": 3, "bar-other panel": 3, "bar track": 3, "bar-ok track": 3,
	}
	for _, tone := range []string{"ok", "info", "warn", "bad", "plain"} {
		pairs[tone+" "+tone+"-bg"] = 4.5
		pairs[tone+" panel"] = 4.5
		pairs[tone+" bg"] = 4.5
	}
	for name, palette := range map[string]map[string]string{"light": light, "dark": dark} {
		for pair, want := range pairs {
			front, back, _ := strings.Cut(pair, " ")
			a, b := luminance(t, palette[front]), luminance(t, palette[back])
			if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < want {
				t.Errorf("%s: %s on %s is %.2f, want %.1f", name, front, back, ratio, want)
			}
		}
	}
}

// Events change only the activity of their own run. Other events have no effect.
func TestRunThatIsNotOnHasNothingLive(t *testing.T) {
	t.Parallel()
	f, _ := shop(t)
	live := dashboard.NewLive()
	live.Observe("shop", journal.Event{Kind: journal.EventSweep, Text: "2 to work"})
	live.Observe("other", journal.Event{Kind: journal.EventAgent, Run: "r-412", Text: "of another project"})
	live.Observe("shop", journal.Event{Kind: journal.EventAgent, Run: "r-412", Text: "mine", Time: time.Now()})
	if _, body := get(t, site(t, f, live)+"/"); strings.Contains(body, "another project") || !strings.Contains(body, ">mine<") {
		t.Errorf("page:\n%s", body)
	}
}

// An unknown cost is not shown as zero. An incomplete or estimated cost is marked.
func TestUnknownCost(t *testing.T) {
	t.Parallel()
	said, last := dashboard.Chart(0, []journal.Total{{Day: 100, Runs: 3, Unknown: 2, Usage: agents.Usage{CostUSD: 3, Input: 9, Unpriced: 2, Estimated: 1}}}, 7, 100)
	for got, want := range map[string]string{
		said: "Dollars a day over 7 days: >~$3.00 in all, >~$3.00 at most; the cost of 2 runs is not completely known.",
		last: "1970-04-11: >~$3.00; the cost of 2 runs is not completely known",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for want, u := range map[string]agents.Usage{
		"–": {}, "$1.50": {CostUSD: 1.5}, ">$1.50": {CostUSD: 1.5, Input: 9, Unpriced: 2}, "~$1.50": {CostUSD: 1.5, Input: 9, Estimated: 2},
		"9 tok": {Input: 9, Unpriced: 9}, "~9 tok": {Input: 9, Estimated: 9, Unpriced: 9},
	} {
		if got := dashboard.Money(u); got != want {
			t.Errorf("%+v: %s, want %s", u, got, want)
		}
	}
}
