package transport

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/tracker"
)

type thing struct {
	ID    int      `json:"id"`
	Parts []*thing `json:"parts"`
}

func complete(t *thing) bool { return t.ID > 0 }

func completeList(l *[]*thing) bool {
	return *l != nil && !slices.ContainsFunc(*l, func(t *thing) bool { return t == nil || !complete(t) })
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`[]`: true, `[{"id":1}]`: true, ` [{"id":1},{"id":2,"parts":[]}] `: true,
		``: false, `null`: false, ` null `: false, `{}`: false, `[null]`: false, `[{}]`: false, `[{"id":0}]`: false,
		`[{"id":1},{}]`: false, `[{"id":"1"}]`: false, `[`: false, `5`: false,
	} {
		checked := intentOf(ExpectList(t.Context(), complete)).check([]byte(body))
		out, err := Decode([]byte(body), completeList)
		if (err == nil) != want || (checked == nil) != want || (out != nil) != want {
			t.Errorf("%s: %v, checked %v, %+v; want complete %v", body, err, checked, out, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`[]`, `[{"id":1,"parts":[{"id":2}]}]`, `null`, `[null]`, `{}`, `[{"ID":1}]`, `[{"id":1e0}]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		out, err := Decode(body, completeList)
		checked := intentOf(ExpectList(t.Context(), complete)).check(body)
		if (err == nil) != (checked == nil) {
			t.Errorf("Decode says %v, ExpectList %v", err, checked)
		}
		if err != nil {
			if out != nil {
				t.Errorf("refused, and returned %+v", out)
			}
			return
		}
		if *out == nil {
			t.Error("accepted, and nothing is there")
		}
		for _, o := range *out {
			if o == nil || o.ID <= 0 {
				t.Errorf("accepted, though %+v has no id", o)
			}
		}
	})
}

// A malformed answer is requested again, a few times, and never cached.
func TestMisformedAnswer(t *testing.T) {
	t.Parallel()
	for badAnswers, want := range map[int]int{1: 2, retry.Attempts - 1: retry.Attempts, 100: retry.Attempts} {
		g := newRig(t, Config{CacheDir: filepath.Join(t.TempDir(), "cache")}, func(n int, w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("If-None-Match") != "" {
				t.Error("an incomplete answer was cached")
			}
			w.Header().Set("ETag", `"x"`)
			if n <= badAnswers {
				writeJSON(w, http.StatusOK, `{}`)
				return
			}
			writeJSON(w, http.StatusOK, `{"id":3}`)
		})
		var out thing
		_, _, err := g.do(Check(t.Context(), func(b []byte) error { return decodeThing(b, &out) }), http.MethodGet, "/x", "")
		if n := g.requestCount(); n != want {
			t.Errorf("%d requests, want %d", n, want)
		}
		var away *tracker.UnavailableError
		switch err = Explain(t.Context(), nil, "", err); {
		case badAnswers < want && (err != nil || out.ID != 3):
			t.Errorf("after %d bad answers: %+v, %v", badAnswers, out, err)
		case badAnswers >= want && !errors.As(err, &away):
			t.Errorf("after nothing but bad answers: %v, want *UnavailableError", err)
		}
	}
}

func decodeThing(b []byte, out *thing) error {
	got, err := Decode(b, complete)
	if err == nil {
		*out = *got
	}
	return err
}

// The effect of a write with an incomplete answer is uncertain, and the write is repeated only if that is safe.
func TestMisformedWrite(t *testing.T) {
	t.Parallel()
	g := newRig(t, Config{}, func(_ int, w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusCreated, `{}`) })
	_, _, err := g.do(ExpectList(t.Context(), complete), http.MethodPost, "/x", "{}")
	if !Uncertain(err) || g.requestCount() != 1 {
		t.Errorf("%d requests, %v; want one whose effect is uncertain", g.requestCount(), err)
	}
	_, _, err = g.do(WithIdempotent(ExpectList(t.Context(), complete)), http.MethodPost, "/x", "{}")
	if !Uncertain(err) || g.requestCount() != 1+retry.Attempts {
		t.Errorf("%d requests, %v", g.requestCount(), err)
	}
}

// A cached answer is requested again if an older version of ralph cached it with a weaker check.
func TestKeptWithoutForm(t *testing.T) {
	t.Parallel()
	body := `{}`
	g := newRig(t, Config{CacheDir: filepath.Join(t.TempDir(), "cache")}, func(_ int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"x"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		writeJSON(w, http.StatusOK, body)
	})
	if _, _, err := g.get("/x"); err != nil {
		t.Fatal(err)
	}
	body = `{"id":3}`
	var out thing
	expect := Check(t.Context(), func(b []byte) error { return decodeThing(b, &out) })
	if _, _, err := g.do(expect, http.MethodGet, "/x", ""); err != nil || out.ID != 3 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestTwice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []int
		want    int
	}{
		"there": {[]int{200}, 200}, "late": {[]int{404, 200}, 200}, "gone once": {[]int{410, 200}, 200},
		"gone": {[]int{404, 410}, 410}, "refused": {[]int{403}, 403}, "refused later": {[]int{404, 401}, 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, Config{CacheDir: filepath.Join(t.TempDir(), "cache")}, func(n int, w http.ResponseWriter, r *http.Request) {
				w.Header().Set("ETag", `"x"`)
				if n > 1 && n%2 == 1 && r.Header.Get("If-None-Match") != "" {
					t.Error("the second look may be answered from a copy")
				}
				if n == 1 { // fills the cache
					writeJSON(w, 200, `{}`)
					return
				}
				writeJSON(w, c.answers[n-2], `{}`)
			})
			if _, _, err := g.get("/x"); err != nil {
				t.Fatal(err)
			}
			got := 0
			_ = g.RetryNotFound(t.Context(), func(ctx context.Context) error {
				status, _, err := g.do(ctx, http.MethodGet, "/x", "")
				if err != nil {
					return err
				}
				got = status
				return &Failure{Status: status}
			})
			if got != c.want || g.requestCount() != 1+len(c.answers) {
				t.Errorf("ends with %d after %d requests, want %d", got, g.requestCount()-1, c.want)
			}
			if waited := g.clock.Slept(); (len(c.answers) > 1) != (waited >= time.Second) {
				t.Errorf("waited %v", waited)
			}
		})
	}
}
