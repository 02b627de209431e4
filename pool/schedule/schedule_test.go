package schedule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/schedule"
)

func files() *schedule.Files {
	return schedule.NewFiles([]string{"README.md", "Makefile", "api/v1/user.go", "api/v1/user_test.go", "api/main.go", "web/main.go", "web/app/[id].tsx", "docs/a.md"})
}

// issues parses issues written as "key: text", with "Touches:" as in a text.
func issues(f *schedule.Files, list ...string) (out []schedule.Issue) {
	for n, line := range list {
		key, text, _ := strings.Cut(line, ": ")
		i := schedule.Issue{Key: key, Priority: 1, Created: time.Unix(int64(n+1), 0)}
		if list, ok := schedule.Declared(text); ok {
			i.Declared, i.Area = true, f.Patterns(list)
		} else {
			i.Area = f.Named(text)
		}
		out = append(out, i)
	}
	return out
}

func works(list ...string) (out []schedule.Work) {
	for _, line := range list {
		key, paths, _ := strings.Cut(line, ":")
		out = append(out, schedule.Work{Key: key, Area: schedule.Area{Paths: strings.Fields(paths)}, Since: time.Unix(10, 0)})
	}
	return out
}

func TestDecide(t *testing.T) {
	t.Parallel()
	list := func(s ...string) []string { return s }
	for name, c := range map[string]struct {
		queue, on, open []string
		limit           int
		begin           string
		wait            []string // "key cause for path"
		later           []string
	}{
		"nothing in common": {queue: list("a: fix api/main.go", "b: fix web/main.go"), begin: "a b"},
		"no paths at all":   {queue: list("a: fix it", "b: fix it"), begin: "a b"},
		"the same file": {
			queue: list("a: fix api/main.go", "b: see api/main.go:12, please"), begin: "a", wait: list("b overlap a api/main.go"),
		},
		"a folder and a file in it": {
			queue: list("a: tidy api/v1/", "b: in `user.go`"), begin: "a", wait: list("b overlap a api/v1/user.go"),
		},
		"a file that is to be made": {
			queue: list("a: Touches: api/new.go", "b: touches: api/**"), begin: "a", wait: list("b overlap a api/new.go"),
		},
		"two patterns": {
			queue: list("a: Touches: api/**", "b: Touches: **/*_test.go", "c: Touches: **/*.md"),
			begin: "a c", wait: list("b overlap a api/v1/user_test.go"),
		},
		"a person says none": {queue: list("a: fix api/main.go", "b: Touches: none\nsee api/main.go"), begin: "a b"},
		"a run that is on": {
			queue: list("a: fix api/main.go", "b: fix web/main.go"), on: list("x: api/main.go"), begin: "b", wait: list("a overlap x api/main.go"),
		},
		"none is overtaken by what it shares files with": {
			queue: list("a: api/main.go web/main.go", "b: web/main.go"), on: list("x: api/main.go"),
			wait: list("a overlap x api/main.go", "b overlap a web/main.go"),
		},
		"the issue's own run": {queue: list("a: fix api/main.go"), on: list("a: api/main.go"), begin: "a"},
		"a declared issue waits for a merge, and nobody for it": {
			queue: list("a: Touches: api", "b: fix api/v1/user.go"), open: list("x: api/main.go"), begin: "b", wait: list("a unmerged x api/main.go"),
		},
		"its own commits": {queue: list("a: Touches: api"), open: list("a: api/main.go"), begin: "a"},
		"a guess only goes behind others": {
			queue: list("a: fix api/main.go", "b: fix web/main.go", "c: fix docs/a.md"), open: list("x: api/main.go"), begin: "b c a",
			later: list("a unmerged x api/main.go"),
		},
		"but two guesses in their order": {
			queue: list("a: fix api/main.go", "b: fix api/main.go", "c: fix docs/a.md"), open: list("x: api/main.go"), begin: "c a",
			wait: list("b overlap a api/main.go"), later: list("a unmerged x api/main.go", "b unmerged x api/main.go"),
		},
		"names with brackets are no patterns": {
			queue: list("a: fix web/app/[id].tsx", "b: Touches: web/app/[id].tsx"), begin: "a", wait: list("b overlap a web/app/[id].tsx"),
		},
		"as many as may be": {
			queue: list("a: 1", "b: 2", "c: 3"), on: list("y:"), open: list("x:", "y:"), limit: 3, begin: "a", wait: list("b open  3 of 3", "c open  3 of 3"),
		},
		"a request that is open already": {queue: list("a: 1", "x: 2"), open: list("x:"), limit: 1, begin: "x", wait: list("a open  1 of 1")},
		"more than may be":               {queue: list("a: 1"), open: list("x:", "y:"), limit: 1, wait: list("a open  2 of 1")},
		"who waits takes no place": {
			queue: list("a: api/main.go", "b: api/main.go", "c: docs/a.md"), limit: 2, begin: "a c", wait: list("b overlap a api/main.go"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := files()
			d := schedule.Decide(schedule.Facts{Files: f, Queue: issues(f, c.queue...), InProgress: works(c.on...), Open: works(c.open...), Limit: c.limit})
			if got := strings.Join(d.Begin, " "); got != c.begin {
				t.Errorf("begin %q, want %q", got, c.begin)
			}
			text := func(list []schedule.Wait) (out []string) {
				for _, w := range list {
					out = append(out, strings.TrimSpace(fmt.Sprint(w.Key, " ", w.Code, " ", w.WaitsFor, " ", w.Detail)))
				}
				slices.Sort(out)
				return out
			}
			if got := text(d.Wait); !slices.Equal(got, c.wait) {
				t.Errorf("wait %q, want %q", got, c.wait)
			}
			if got := text(d.Later); !slices.Equal(got, c.later) {
				t.Errorf("later %q, want %q", got, c.later)
			}
		})
	}
}

// The number of issues with a label that begin is limited, in any case of the label; an issue that waits for files does not
// count.
func TestByLabel(t *testing.T) {
	t.Parallel()
	f := files()
	limits := schedule.ParseLimits([]string{"DB=1", "web=2", "nonsense", "x=0"})
	if len(limits) != 2 {
		t.Fatal(limits)
	}
	for name, c := range map[string]struct{ queue, on, begin, wait string }{
		"one of two":              {"a:db b:Db c:", "", "a c", "b busy db: 1 of 1"},
		"one is on":               {"a:db b:web", "x:DB", "b", "a busy db: 1 of 1"},
		"its own run":             {"a:other", "a:db", "a", ""},
		"two labels, one full":    {"a:db,web b:web c:web", "x:web", "a", "b busy web: 2 of 2 c busy web: 2 of 2"},
		"who waits takes nothing": {"a:db,web b:web", "x:db", "b", "a busy db: 1 of 1"},
		"more than may be":        {"a:db", "x:db y:db", "", "a busy db: 2 of 1"},
	} {
		facts := schedule.Facts{Files: f, ByLabel: limits}
		for at, text := range strings.Fields(c.queue) {
			key, labels, _ := strings.Cut(text, ":")
			facts.Queue = append(facts.Queue, schedule.Issue{Key: key, Labels: strings.Split(labels, ","), Created: time.Unix(int64(at), 0)})
		}
		for _, text := range strings.Fields(c.on) {
			key, labels, _ := strings.Cut(text, ":")
			facts.InProgress = append(facts.InProgress, schedule.Work{Key: key, Labels: strings.Split(labels, ",")})
		}
		d := schedule.Decide(facts)
		var wait []string
		for _, w := range d.Wait {
			wait = append(wait, fmt.Sprintf("%s %s %s", w.Key, w.Code, w.Detail))
		}
		if strings.Join(d.Begin, " ") != c.begin || strings.Join(wait, " ") != c.wait {
			t.Errorf("%s: begin %q, wait %q", name, d.Begin, wait)
		}
	}
}

// Issues created after the commits that an issue yields to do not overtake it.
func TestNotPutOffForEver(t *testing.T) {
	t.Parallel()
	f := files()
	queue := issues(f, "a: fix api/main.go", "b: fix web/main.go", "c: fix docs/a.md", "d: fix README.md")
	queue[2].Created = time.Unix(20, 0)
	queue[3].Priority = 2
	d := schedule.Decide(schedule.Facts{Files: f, Queue: queue, Open: works("x: api/main.go")})
	if got := strings.Join(d.Begin, " "); got != "b a c d" {
		t.Errorf("begin %s", got)
	}
}

// Whatever the facts: every issue begins or waits, once. An issue that waits for another waits for one that begins, is in
// progress, or waits for such a one itself. If nothing is in progress or open, something begins.
func FuzzDecide(f *testing.F) {
	f.Add("a: api/main.go\nb: Touches: **\nc: touches: none", "b: api", "c: README.md", 2)
	f.Fuzz(func(t *testing.T, queue, on, open string, limit int) {
		files := files()
		lines := func(s string) []string { return strings.Split(s, "\n") }
		var list []schedule.Issue
		seen := map[string]bool{}
		for _, i := range issues(files, lines(queue)...) {
			if i.Labels = []string{"l", "m"}[:len(list)%3%2]; !seen[i.Key] {
				list = append(list, i)
			}
			seen[i.Key] = true
		}
		facts := schedule.Facts{Files: files, Queue: list, InProgress: works(lines(on)...), Open: works(lines(open)...), Limit: limit, ByLabel: schedule.Limits{"l": 1}}
		d := schedule.Decide(facts)
		can := map[string]bool{}
		for _, w := range facts.InProgress {
			can[w.Key] = true
		}
		for _, k := range d.Begin {
			can[k] = true
		}
		if len(d.Begin)+len(d.Wait) != len(list) {
			t.Fatalf("%d begin, %d wait, of %d", len(d.Begin), len(d.Wait), len(list))
		}
		for _, w := range d.Wait {
			if w.Code == journal.SkipBusy {
				can[w.Key] = true
			}
			if w.Code == journal.SkipOverlap {
				if w.WaitsFor == w.Key || !can[w.WaitsFor] {
					t.Fatalf("%+v", w)
				}
				can[w.Key] = true
			}
		}
		facts.InProgress, facts.Open, facts.Limit = nil, nil, 0
		if d := schedule.Decide(facts); len(d.Begin) == 0 {
			t.Fatalf("nothing begins: %+v", d)
		}
	})
}

func TestNamed(t *testing.T) {
	t.Parallel()
	f := files()
	for text, want := range map[string]string{
		"see ./README.md, (api/v1/user.go:12:3) and `Makefile`.": "README.md api/v1/user.go Makefile",
		"the Makefile, or api, or main.go; and/or docs":          "", // words; and a name that two files have
		"[user](api/v1/user.go#L3) https://x.example/api/":       "api/v1/user.go",
		"all of docs/ and api/v1, and v1/user.go":                "docs api/v1 api/v1/user.go",
		"../../etc/passwd /etc/passwd .. . / // `` ```":          "",
		strings.Repeat("x", 70<<10) + " README.md":               "",
	} {
		if got := strings.Join(f.Named(text).Paths, " "); got != want {
			t.Errorf("%.60s: %q, want %q", text, got, want)
		}
	}
}

func TestDeclared(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Do it.\r\n- **Touches:** `a/*.go`, b.md\r\nmore": "[a/*.go b.md] true",
		"touches: none": "[] true",
		"touches:":      "[] true",
		"it touches: a": "[] false",
	} {
		list, ok := schedule.Declared(text)
		if got := fmt.Sprint(list, " ", ok); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
