package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestLongPages: a page that is too long is read in smaller ones, and an entry that is too long by itself is left out. However
// many entries are long, there are at most 70 additional requests: after that, long pages are left out.
func TestLongPages(t *testing.T) {
	t.Parallel()
	all, late := map[int]int{}, []int(nil)
	for n := range 1000 {
		all[n] = 5000
		if n >= 20 {
			late = append(late, n)
		}
	}
	for name, c := range map[string]struct {
		long     map[int]int // bytes of entries; the others are short
		left     []int       // entries that are left out
		requests int
	}{
		"short ones":      {nil, nil, 3},
		"long page":       {map[int]int{0: 5000, 1: 5000, 2: 5000}, nil, 3 + 5 + 5 + 4},
		"very long entry": {map[int]int{130: 50_000}, []int{130}, 3 + 5 + 5 + 4},
		"last page":       {map[int]int{248: 9000, 249: 9000}, nil, 3 + 3 + 3 + 2},
		"long ones":       {all, late, 10 + 5*5 + 5*5 + 5*4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entries := max(250, len(c.long))
			g := newRig(t, Config{MaxBody: 40_000}, func(_ int, w http.ResponseWriter, r *http.Request) {
				var number, size int
				_, _ = fmt.Sscanf(r.URL.RawQuery, "page=%d&per_page=%d", &number, &size)
				list := []string{}
				for n := (number - 1) * size; n < min(entries, number*size); n++ {
					list = append(list, fmt.Sprint(n, strings.Repeat(" ", c.long[n])))
				}
				w.Header().Set("X-More", fmt.Sprint(number*size < entries))
				text, _ := json.Marshal(list)
				writeJSON(w, 200, string(text))
			})
			var got []int
			err := Pages(ExpectList(t.Context(), func(*string) bool { return true }), func(ctx context.Context, number, size int) (bool, error) {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/x?page=%d&per_page=%d", g.server.URL, number, size), nil)
				if err != nil {
					return false, err
				}
				resp, err := g.Client().Do(r)
				if err != nil {
					return false, Explain(ctx, nil, "", err)
				}
				defer resp.Body.Close()
				var some []string
				if err := json.NewDecoder(resp.Body).Decode(&some); err != nil {
					return false, err
				}
				for _, s := range some {
					n := 0
					_, _ = fmt.Sscan(s, &n)
					got = append(got, n)
				}
				return resp.Header.Get("X-More") == "true", nil
			})
			var want []int
			for n := range entries {
				if !slices.Contains(c.left, n) {
					want = append(want, n)
				}
			}
			if err != nil || !slices.Equal(got, want) || g.requestCount() != c.requests {
				t.Errorf("%v after %d requests, want %d; read %v", err, g.requestCount(), c.requests, got)
			}
		})
	}
}
