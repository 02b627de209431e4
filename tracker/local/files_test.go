package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/tracker"
)

// A broken file is a problem with its line and its fix, in List, Get and Change alike.
func TestProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"yaml", "---\ntitle: x\nlabels: a: b\n---\n", `:3: front matter is not YAML: mapping value is not allowed in this context; correct the line`},
		{"yaml windows", "---\r\n# c\r\ntitle: 'x\r\n---\r\n", `:3: front matter is not YAML: could not find end character of single-quoted text; correct the line`},
		{"open", "---\ntitle: x\n", `:1: front matter has no end; add a line --- after it`},
		{"duplicate", "---\nstate: open\nstate: closed\n---\n", `:3: front matter is not YAML: mapping key "state" is there twice; correct the line`},
		{"list", "---\n- a\n---\n", `:2: front matter is not keys and values; write lines like title: Fix the login`},
		{"documents", "---\na: 1\n...\nb: 1\n---\n", `:2: front matter has more than one YAML document; keep one`},
		{"state", "---\na: 1\nstate: done\n---\n", `:3: state is "done"; write state: open or state: closed`},
		{"blocker's name", "---\na: 1\nblockd_by: [b]\n---\n", `:3: "blockd_by" is not a field that ralph knows; did you mean blocked_by?`},
		{"patterns' name", "---\ntouch: [b]\n---\n", `:2: "touch" is not a field that ralph knows; did you mean touches?`},
		{"state's name", "---\nstatus: closed\n---\n", `:2: "status" is not a field that ralph knows; did you mean state?`},
		{"state list", "---\nstate: [open]\n---\n", `:2: state is not a single value; write state: open or state: closed`},
		{"priority", "---\npriority: high\n---\n", `:2: priority is "high"; write a whole number, such as priority: 1`},
		{"created", "---\ncreated: yesterday\n---\n", `:2: created is "yesterday"; write a date such as 2026-11-30, or a time such as 2026-11-30T15:04:05Z`},
		{"open list", "---\ntitle: [x\nlabels: [a]\n---\n", `:2: front matter is not YAML: the [ has no ] after it; correct the line`},
		{"long title", "---\ntitle: " + strings.Repeat("x", tracker.MaxTitle+1) + "\n---\n", `:1: its title has 4097 bytes; at most 4096 are allowed`},
		{"title", "---\ntitle: [a]\n---\n", `:2: title is not a text; write title: "some text"`},
		{"labels", "---\nlabels:\n- a\n- {b: c}\n---\n", `:4: labels is not a list of texts; write labels: [one, two]`},
		{"alias", "---\nx: &x [a]\nblocked_by: *x\n---\n", `:3: blocked_by is not a list of texts; write blocked_by: [one, two]`},
		{"touches", "---\ntouches:\n- a\n- 'b[x'\n---\n", `:4: touches has "b[x", which is not a path pattern, or has too many alternatives; write touches: [src/api/**, README.md]`},
		{"braces", "---\ntouches: ['{a,a}{a,a}{a,a}{a,a}{a,a}{a,a}{a,a}{a,a}{a,a}']\n---\n", `:2: touches has "{a,a}{a,a}{a,a}{a,a}{a,a}{a,a}{a,a}{a,a}…", which is not a path pattern, or has too many alternatives; write touches: [src/api/**, README.md]`},
		{"utf8", "# a\nb\xff\n", `:2: not UTF-8; save the file as UTF-8`},
		{"return", "---\na: 1\rb: 2\n---\n", `:2: stray carriage return; use one kind of line end`},
		{"large", strings.Repeat("x", maxIssue+1), `:1: issue is over 1 MiB; shorten it`},
		{"huge", strings.Repeat("x", maxFile+1), `:1: is over 2 MiB; shorten it`},
		{"front", "---\n#" + strings.Repeat("x", maxFront) + "\n---\n", `:1: front matter is over 16 KiB; move text into the body`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tr := open(t, dir)
			path := filepath.Join(dir, "bad.md")
			write(t, dir, "bad.md", c.text)
			write(t, dir, "good.md", "# Good\n")
			l, err := tr.List(t.Context(), tracker.Query{})
			if err != nil || len(l.Issues) != 1 || l.Issues[0].Key != "good" {
				t.Fatalf("List = %+v, %v, want the good issue", l.Issues, err)
			}
			if len(l.Problems) != 1 || l.Problems[0].Error() != path+strings.Replace(c.want, "\n", "", 1) {
				t.Errorf("List: problems %q, want %q", l.Problems, path+c.want)
			}
			if _, err := tr.Get(t.Context(), "bad"); err == nil || err.Error() != path+c.want {
				t.Errorf("Get: %v, want %q", err, path+c.want)
			}
			if err := tr.Change(t.Context(), "bad", tracker.Change{Close: true}); err == nil || err.Error() != path+c.want {
				t.Errorf("Change: %v, want %q", err, path+c.want)
			}
			if read(t, path) != c.text {
				t.Error("the broken file was changed")
			}
		})
	}
}

func TestWhatIsAnIssue(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	write(t, outside, "secret.md", "# Secret")
	for _, name := range []string{"b.md", "a.md", "README.md", ".hidden.md", "notes.txt", "x.md.tmp", "Fix Login!.md"} {
		write(t, dir, name, "# "+name)
	}
	fixKey := tracker.Key("Fix Login!")
	write(t, dir, fixKey+".md", "# same key")
	for link, to := range map[string]string{"link.md": filepath.Join(outside, "secret.md"), "inside.md": "a.md", "up.md": "../x.md"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.md"), 0o644); err != nil {
		t.Fatal(err)
	}
	tr := open(t, dir)
	l, err := tr.List(t.Context(), tracker.Query{})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, i := range l.Issues {
		keys = append(keys, i.Key+" "+i.ID+" "+i.Title)
	}
	want := []string{fixKey + " Fix Login!.md Fix Login!.md", "a a.md a.md", "b b.md b.md"}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("issues (-want +got):\n%s", diff)
	}
	var problems []string
	for _, p := range l.Problems {
		problems = append(problems, strings.TrimPrefix(p.Error(), dir+"/"))
	}
	const link = ":1: is a symbolic link, which ralph does not follow; replace it with the file"
	want = []string{
		fixKey + ".md:1: has the same key (" + fixKey + ") as Fix Login!.md; rename one of them",
		"inside.md" + link, "link.md" + link, "pipe.md:1: is not a regular file; remove it", "up.md" + link,
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	for _, key := range []string{"link", "inside", "pipe"} {
		if err := tr.Report(t.Context(), key, tracker.Report{Run: "r", Body: "x"}); err == nil {
			t.Errorf("Report on %s.md was written", key)
		}
	}
	if got := read(t, filepath.Join(outside, "secret.md")); got != "# Secret" {
		t.Errorf("a file outside the folder was written: %q", got)
	}
	if i, err := tr.Get(t.Context(), fixKey); err != nil || i.ID != "Fix Login!.md" {
		t.Errorf("Get(%s) = %s, %v, want the file that List gives", fixKey, i.ID, err)
	}
}

func TestIssueFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       tracker.Issue
	}{
		{"plain", "Just text.\n\n```sh\n# no heading\n```\n## The ~~heading~~ ##\n", tracker.Issue{Title: "The ~~heading~~", Open: true}},
		{"name", "text", tracker.Issue{Title: "name", Open: true}},
		{"empty", "", tracker.Issue{Title: "empty", Open: true}},
		{"texts", "---\ntitle: >\n  two\n  lines\nlabels: a, b , ,c\nauthor: \"ada\"\n---\n# Not this\n", tracker.Issue{
			Title: "two lines", Labels: []string{"a", "b", "c"}, Author: "ada", Open: true,
		}},
		{"numbers", "---\ntitle: 007\nlabels: [1.50, true, ~, '']\nblocked_by: 042\npriority: -3\nstate: CLOSED\n---\n", tracker.Issue{
			Title: "007", Labels: []string{"1.50", "true"}, Priority: -3, BlockedBy: []tracker.Blocker{{Key: "042", Open: true}},
		}},
		{"date", "---\ncreated: 2026-01-31\nstate: ~\npriority:\nlabels:\nmine: {x: [y]}\n---\n", tracker.Issue{
			Title: "date", Created: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), Open: true,
		}},
		{"anchors", "---\ntitle: &t Text\nlabels: &l [a]\nother: *l\n---\n", tracker.Issue{Title: "Text", Labels: []string{"a"}, Open: true}},
		{"touches", "---\ntouches: [a/*.go, 'b [x].md']\n---\n", tracker.Issue{Title: "touches", Touches: []string{"a/*.go", "b [x].md"}, Open: true}},
		{"none", "---\ntouches: none\n---\n", tracker.Issue{Title: "none", Touches: []string{}, Open: true}},
		{"rule", "text\n\n---\nstate: closed\n---\n", tracker.Issue{Title: "rule", Open: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, c.name+".md", c.text)
			got, err := open(t, dir).Get(t.Context(), c.name)
			if err != nil {
				t.Fatal(err)
			}
			c.want.Key, c.want.ID, c.want.URL = c.name, c.name+".md", filepath.Join(dir, c.name+".md")
			c.want.Raw, c.want.Reported = true, new(string)
			got.Body, got.Updated = "", time.Time{}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBlockers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a.md", "---\nblocked_by:\n- ./b.md\n- gone\n- broken\n- Odd Name.md\n- a\n---\n")
	write(t, dir, "b.md", "---\nstate: closed\n---\n")
	write(t, dir, "broken.md", "---\nstate: what\n---\n")
	write(t, dir, "Odd Name.md", "---\nstate: closed\n---\n")
	write(t, dir, "shut.md", "---\nstate: closed\nblocked_by: gone\n---\n")
	tr := open(t, dir)
	want := []tracker.Blocker{{Key: "b"}, {Key: "gone", Open: true}, {Key: "broken", Open: true}, {Key: tracker.Key("Odd Name")}, {Key: "a", Open: true}}
	i, err := tr.Get(t.Context(), "a")
	if diff := cmp.Diff(want, i.BlockedBy); diff != "" || err != nil {
		t.Errorf("Get: %v (-want +got):\n%s", err, diff)
	}
	l, err := tr.List(t.Context(), tracker.Query{})
	if err != nil || len(l.Issues) != 1 || len(l.Problems) != 2 {
		t.Fatalf("List = %+v, %v", l, err)
	}
	if diff := cmp.Diff(want, l.Issues[0].BlockedBy); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
	missing := filepath.Join(dir, "a.md") + `:4: blocked_by "gone" is not an issue, so this one stays blocked; correct the name or remove it`
	if got := l.Problems[0].Error(); got != missing {
		t.Errorf("problem %q, want %q", got, missing)
	}
}

func TestMissingFolder(t *testing.T) {
	t.Parallel()
	tr := open(t, filepath.Join(t.TempDir(), "backlog"))
	_, err := tr.List(t.Context(), tracker.Query{})
	if !errors.Is(err, ErrNoFolder) || !strings.Contains(err.Error(), "/backlog: no such folder") {
		t.Errorf("List = %v", err)
	}
	if err := tr.Change(t.Context(), "a", tracker.Change{Close: true}); err == nil || errors.Is(err, tracker.ErrNotFound) {
		t.Errorf("Change = %v, want that the folder is missing", err)
	}
	if _, err := New(Config{}); err == nil {
		t.Error("New without a folder succeeded")
	}
}

// A file name that only a case-insensitive system takes for an issue is reported.
func TestNameInCapitals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tr := open(t, dir)
	write(t, dir, "UP.MD", "# Up\n")
	write(t, dir, "notes.txt", "x")
	l, err := tr.List(t.Context(), tracker.Query{})
	if want := filepath.Join(dir, "UP.MD") + ":1: its name does not end in .md, in lower case; rename it"; err != nil ||
		len(l.Issues) != 0 || len(l.Problems) != 1 || l.Problems[0].Error() != want {
		t.Errorf("%+v, %v", l, err)
	}
}
