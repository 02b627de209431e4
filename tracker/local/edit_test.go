package local

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
)

func TestApplyChange(t *testing.T) {
	t.Parallel()
	swap := tracker.Change{AddLabels: []string{"new"}, RemoveLabels: []string{"a"}}
	for _, c := range []struct {
		name   string
		change tracker.Change
		front  string
		want   string
	}{
		{"flow list", swap, "labels: [a, b]  # note\n", "labels: [b, new]  # note\n"},
		{"flow list, last", tracker.Change{RemoveLabels: []string{"b"}}, "labels: [a, b ]\n", "labels: [a ]\n"},
		{"flow list, only", swap, "labels: [a]\n", "labels: [new]\n"},
		{"flow list, quoted", swap, `labels: [ 'it''s' , "a" , "c\"d" ]` + "\n", `labels: [ 'it''s' , "c\"d", new ]` + "\n"},
		{"flow list, trailing comma", swap, "labels: [b, a,]\n", "labels: [b, new,]\n"},
		{"flow list, empty", swap, "labels: [ ]\n", "labels: [new ]\n"},
		{"flow list, lines", swap, "labels: [\n  a,\n  b, # why\n]\n", "labels: [\n  b, new, # why\n]\n"},
		{"flow list, comment on the line", swap, "labels: [\n  a, # why\n  b\n]\n", "labels: [\n  # why\n  b, new\n]\n"},
		{"flow list, not ASCII", swap, "title: ü\nlabels: [é, a, 漢字]\n", "title: ü\nlabels: [é, 漢字, new]\n"},
		{"block list", swap, "labels:\n  - a\n  - b # why\nx: 1\n", "labels:\n  - b # why\n  - new\nx: 1\n"},
		{"block list, no indent", swap, "labels:\n- a\n\n-   b\n# end\n", "labels:\n\n-   b\n-   new\n# end\n"},
		{"block list, comment kept", swap, "labels:\n- a # why\n- b\n", "labels:\n# why\n- b\n- new\n"},
		{"block list, only", swap, "labels:\n- a\nx: y\n", "labels: [new]\nx: y\n"},
		{"text", swap, "labels: a, b # c\n", "labels: [b, new] # c\n"},
		{"text, only", swap, "labels: a\n", "labels: [new]\n"},
		{"text, single quotes", swap, "labels: 'a,b'\n", "labels: [b, new]\n"},
		{"text, double quotes", swap, "labels: \"b, a\"\n", "labels: [b, new]\n"},
		{"text, with a comma to add", tracker.Change{AddLabels: []string{"x, y"}}, "labels: a, b\n", "labels: [a, b, 'x, y']\n"},
		{"empty", swap, "labels:\nx: 1\n", "labels: [new]\nx: 1\n"},
		{"empty with a comment", swap, "labels: # none\nx: 1\n", "labels: [new] # none\nx: 1\n"},
		{"null", swap, "labels: ~ # none\n", "labels: [new] # none\n"},
		{"missing", swap, "x: |+\n  labels: [a]\n\n", "x: |+\n  labels: [a]\n\nlabels: [new]\n"},
		{"missing, indented", swap, "  x: 1\n  y: 2\n", "  x: 1\n  y: 2\n  labels: [new]\n"},
		{"quoted key", swap, "\"labels\" : [a]\n", "\"labels\" : [new]\n"},
		{"no fields", swap, "# only a comment\n", "# only a comment\nlabels: [new]\n"},
		{"needs quotes", tracker.Change{AddLabels: []string{"type: it's", "yes", "#1"}}, "labels: []\n", "labels: ['type: it''s', 'yes', '#1']\n"},
		{"twice the same label", swap, "labels: [a, A, b]\n", "labels: [b, new]\n"},
		{"close", tracker.Change{Close: true}, "state: open # x\n", "state: closed # x\n"},
		{"close, quoted", tracker.Change{Close: true}, "state:   \"Open\"\n", "state:   \"closed\"\n"},
		{"close, missing", tracker.Change{Close: true}, "x: [1,\n 2]\n", "x: [1,\n 2]\nstate: closed\n"},
		{"close, empty", tracker.Change{Close: true}, "state:\nx: 1\n", "state: closed\nx: 1\n"},
		{"all", tracker.Change{AddLabels: []string{"x"}, Close: true}, "{}\n", ""},
		{"flow document", tracker.Change{AddLabels: []string{"x"}}, "{labels: [a], state: open}\n", "{labels: [a, x], state: open}\n"},
		{"user's own text", swap, "zeta:   &z  {a: b}  # keep\n\n\nother: *z\nlabels: [a]\n'q': \"\\u00e9\"\n", "zeta:   &z  {a: b}  # keep\n\n\nother: *z\nlabels: [new]\n'q': \"\\u00e9\"\n"},
		{"nothing to do", tracker.Change{AddLabels: []string{"A"}, RemoveLabels: []string{"z"}}, "labels: &x [a]\n", "labels: &x [a]\n"},
		{"anchor", swap, "labels: &x [a]\n", ""},
		{"tag", swap, "x: 1\nlabels: !!seq [a]\n", ""},
		{"folded", swap, "labels: >\n  a,\n  b\n", ""},
		{"text over lines", swap, "labels: a,\n  b\n", ""},
		{"state with a tag", tracker.Change{Close: true}, "state: !!str open\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, wrap := range []func(string) string{
				func(s string) string { return "---\n" + s + "---\nBody.\n" },
				func(s string) string { return "\ufeff---\n" + s + "---" },
				func(s string) string {
					return strings.ReplaceAll("--- \n"+s+"---\n\n\nBody\n\n<!-- ralph:reports x -->\nmine", "\n", "\r\n")
				},
			} {
				got, err := applyChange([]byte(wrap(c.front)), c.change)
				if c.want == "" {
					if at, ok := errors.AsType[*lineError](err); !ok || !strings.Contains(err.Error(), "cannot be edited safely") {
						t.Errorf("applyChange(%q) = %q, %v, want a refusal with a line", wrap(c.front), got, at)
					}
					continue
				}
				if err != nil || string(got) != wrap(c.want) {
					t.Errorf("applyChange(%q)\n got %q, %v\nwant %q", wrap(c.front), got, err, wrap(c.want))
				}
			}
		})
	}
}

func TestApplyChangeWithoutFrontMatter(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                     "---\nlabels: [x]\n---\n\n",
		"# Title\n":            "---\nlabels: [x]\n---\n\n# Title\n",
		"\ufeff# Title\r\nb":   "\ufeff---\r\nlabels: [x]\r\n---\r\n\r\n# Title\r\nb",
		"---\n---\nb":          "---\nlabels: [x]\n---\nb",
		"----\nno front\n----": "---\nlabels: [x]\n---\n\n----\nno front\n----",
	} {
		got, err := applyChange([]byte(in), tracker.Change{AddLabels: []string{"x"}})
		if err != nil || string(got) != want {
			t.Errorf("applyChange(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
	for _, bad := range []string{"", " ", "a\nb", "a\x00"} {
		if _, err := applyChange([]byte("x"), tracker.Change{AddLabels: []string{bad}}); err == nil {
			t.Errorf("label %q was accepted", bad)
		}
	}
}

// FuzzApplyChange checks that an edit has its effect, and that every line without a label or a state stays.
func FuzzApplyChange(f *testing.F) {
	for _, s := range []string{
		"---\nlabels: [a, b] # c\nstate: open\n---\nbody\n", "---\r\nlabels:\r\n- a\r\n- b # c\r\n---\r\n", "# Title\n",
		"---\nlabels: a, b\nx: |\n  y\n---\n", "---\nlabels: [\n a,\n 'b''c',\n]\n---\nb\n<!-- ralph:reports\nz",
		"---\n{labels: [a], state: open}\n---\n", "---\n# c\n\nlabels: # d\n\n  - \"a\"\n\n  # e\n  - b\n---\n",
		"---\ntitle: 'x: y'\nblocked_by: [a, b.md]\npriority: 3\ncreated: 2026-01-31\n---\n", "---\n? labels\n: [a]\n---\n",
	} {
		f.Add([]byte(s), "new label", "a", true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, add, remove string, shut bool) {
		before, err := parse(raw)
		if err != nil {
			if at := lineIn(err); at < 1 || at > 1+strings.Count(string(raw), "\n") {
				t.Fatalf("parse(%q): %v at line %d", raw, err, at)
			}
			return
		}
		c := tracker.Change{AddLabels: []string{add}, RemoveLabels: []string{remove}, Close: shut}
		got, err := applyChange(raw, c)
		if err != nil {
			return
		}
		after, err := parse(got)
		if err != nil {
			t.Fatalf("%q -> %q: %v", raw, got, err)
		}
		if indexLabel(after.labels, add) < 0 || !tracker.SameLabel(add, remove) && indexLabel(after.labels, remove) >= 0 {
			t.Fatalf("%q -> %q: labels %q", raw, got, after.labels)
		}
		if shut && after.open || !shut && after.open != before.open {
			t.Fatalf("%q -> %q: open %v", raw, got, after.open)
		}
		if after.doc.text() != before.doc.text() || after.title != before.title || after.priority != before.priority {
			t.Fatalf("%q -> %q: something else changed", raw, got)
		}
		if again, err := applyChange(got, tracker.Change{AddLabels: []string{add}, Close: shut}); err != nil || string(again) != string(got) {
			t.Fatalf("%q -> %q: not idempotent: %q, %v", raw, got, again, err)
		}
		checkKeptLines(t, before, string(got))
	})
}

// checkKeptLines checks that the result has every line outside of the fields labels and state, in order.
func checkKeptLines(t *testing.T, f file, got string) {
	raw := string(f.doc.raw)
	rest := strings.SplitAfter(got, "\n")
	var skip [][2]int
	for i, v := range f.front.fields {
		if v.name != "labels" && v.name != "state" {
			continue
		}
		next := lineOf(f.doc.raw, f.doc.frontEnd)
		if i+1 < len(f.front.fields) {
			next = max(f.front.fields[i+1].line, v.line+1)
		}
		skip = append(skip, [2]int{v.line, next})
	}
	for n, line := range strings.SplitAfter(raw, "\n") {
		if slices.ContainsFunc(skip, func(s [2]int) bool { return s[0] <= n+1 && n+1 < s[1] }) {
			continue
		}
		if n == 0 {
			line = strings.TrimPrefix(line, byteOrderMark)
		}
		at := slices.IndexFunc(rest, func(l string) bool { return strings.HasSuffix(l, line) })
		if at < 0 {
			t.Fatalf("%q -> %q: line %q is gone", raw, got, line)
		}
		rest = rest[at+1:]
	}
}

// A listing reports labels that cannot be edited, before an agent costs money, but only for issues that match its query.
func TestListTriesTheLabels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tr, err := New(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for name, front := range map[string]string{
		"anchor": "title: x\nlabels: &a [no-human]\nother: *a\n", "plain": "labels: [no-human]\n", "other": "labels: &a [mine]\nother: *a\n",
		"review": "labels: &a [no-human, in-review]\nother: *a\n", "closed": "labels: &a [no-human]\nstate: closed\n",
	} {
		write(t, dir, name+".md", "---\n"+front+"---\n")
	}
	list, err := tr.List(t.Context(), tracker.Query{Labels: []string{"No-Human"}, Unworked: []string{"in-review"}})
	if err != nil || len(list.Issues) != 3 || len(list.Problems) != 1 || !strings.Contains(list.Problems[0].Error(), "anchor.md:3: labels cannot be edited safely") {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err = tr.List(t.Context(), tracker.Query{}); err != nil || len(list.Issues) != 4 || len(list.Problems) != 0 {
		t.Errorf("all: %+v, %v", list, err)
	}
}
