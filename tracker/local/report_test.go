package local

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
)

func doc(t *testing.T, raw string) document {
	t.Helper()
	d, err := splitDocument([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func set(t *testing.T, raw, run, body string) string {
	t.Helper()
	out, err := setReport(doc(t, raw), tracker.Report{Run: run, Body: body})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestRetract(t *testing.T) {
	t.Parallel()
	report := func(run, text string) string {
		return "<!-- ralph:report " + run + " -->\n" + text + "\n<!-- ralph:end " + run + " -->\n"
	}
	const top, still = "---\ntitle: A\nlabels: [x]\n---\nText.\n\n" + markerLine + "\n\n", "---\ntitle: A\nlabels: [x, on]\n---\nText.\n\n" + markerLine + "\n\n"
	for name, c := range map[string]struct{ in, want string }{
		"its own":        {still + report("2", "Working."), top + report("2", "Lost.")},
		"of an earlier":  {still + report("1", "Failed."), top + report("1", "Failed.")},
		"of a later":     {still + report("3", "Working."), still + report("3", "Working.")},
		"none":           {"---\ntitle: A\nlabels: [on]\n---\n", "---\ntitle: A\nlabels: []\n---\n"},
		"nothing to say": {"---\ntitle:   A\n---\n\n", "---\ntitle:   A\n---\n\n"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "a.md")
		if err := os.WriteFile(path, []byte(c.in), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := New(Config{Dir: dir, LockDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := l.Retract(t.Context(), "a", tracker.Report{Run: "2", Body: "Lost."}, tracker.Change{RemoveLabels: []string{"on"}}); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(path); string(got) != c.want || err != nil {
				t.Errorf("%s:\n%q\nwant %q, %v", name, got, c.want, err)
			}
		}
	}
}

func TestSetReport(t *testing.T) {
	t.Parallel()
	block := func(run, text string) string {
		return "<!-- ralph:report " + run + " -->\n" + text + "\n<!-- ralph:end " + run + " -->\n"
	}
	m := markerLine + "\n"
	for _, c := range []struct{ name, in, want string }{
		{"first", "Text.\n", "Text.\n\n" + m + "\n" + block("r", "New.")},
		{"no line end", "Text.", "Text.\n\n" + m + "\n" + block("r", "New.")},
		{"empty file", "", "\n" + m + "\n" + block("r", "New.")},
		{"gaps kept", "---\na: 1\n---\n\n\nText.\n\n\n", "---\na: 1\n---\n\n\nText.\n\n\n\n" + m + "\n" + block("r", "New.")},
		{"second", "x\n" + m + block("q", "Old."), "x\n" + m + block("r", "New.")},
		{"of an older ralph", "x\n" + m + block("p", "Older.") + "\n" + block("q", "Old."), "x\n" + m + block("p", "Older.") + "\n" + block("r", "New.")},
		{"replaced", "x\n" + m + "note\n" + block("r", "Old.\n\nLong.") + "mine\n", "x\n" + m + "note\n" + block("r", "New.") + "mine\n"},
		{"marker by hand", "x\n<!-- ralph:reports -->", "x\n<!-- ralph:reports -->\n\n" + block("r", "New.")},
		{"end removed by hand", "x\n" + m + "<!-- ralph:report r -->\nmine\n" + block("q", "q"), "x\n" + m + "<!-- ralph:report r -->\nmine\n" + block("r", "New.")},
		{"windows", "x\r\n", "x\r\n" + strings.ReplaceAll("\n"+m+"\n"+block("r", "New."), "\n", "\r\n")},
		{"marker inside a line", "see <!-- ralph:reports -->\n", "see <!-- ralph:reports -->\n\n" + m + "\n" + block("r", "New.")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := set(t, c.in, "r", "New.")
			if got != c.want {
				t.Errorf("setReport(%q)\n got %q\nwant %q", c.in, got, c.want)
			}
			if again := set(t, got, "r", "New."); again != got {
				t.Errorf("not idempotent: %q", again)
			}
			if was, is := doc(t, c.in).text(), doc(t, got).text(); was != is {
				t.Errorf("body %q became %q", was, is)
			}
		})
	}
}

// Text that a person writes at the end of the file, such as an answer to the agent's question, is part of the issue.
func TestTextBelowTheReport(t *testing.T) {
	t.Parallel()
	reported := set(t, "Text.\n", "r", "Which colour?\n<!-- ralph:end r -->\nmine")
	for name, c := range map[string]struct{ raw, want string }{
		"nothing":                {reported, "Text."},
		"an answer":              {reported + "\nBlue.\n", "Text.\n\nBlue."},
		"an answer after others": {set(t, reported+"\nBlue.\n", "q", "Which blue?") + "Dark.\n", "Text.\n\nBlue.\nDark."},
		"only an answer":         {set(t, "", "r", "What?") + "That.\n", "That."},
		"half a report":          {reported + "<!-- ralph:report q -->\nhers\n", "Text."},
		"half a first report":    {"Text.\n" + markerLine + "\n<!-- ralph:report q -->\nhers\n", "Text."},
	} {
		if got := doc(t, c.raw).text(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestReportIsOne(t *testing.T) {
	t.Parallel()
	raw := "Text.\n"
	for i := range 9 {
		raw = set(t, raw, fmt.Sprint("run-", i), fmt.Sprint("Report ", i))
		if i == 5 {
			raw += "\nA person's note.\n"
		}
	}
	if found := reportBlocks(doc(t, raw)); len(found) != 1 || found[0].run != "run-8" {
		t.Errorf("reports kept: %+v", found)
	}
	if !strings.Contains(raw, "\nA person's note.\n") || strings.Contains(raw, "Report 7") || strings.Contains(raw, "\n\n\n") {
		t.Errorf("file: %q", raw)
	}
}

// A report cannot end itself, forge another run's, or grow the file without limit.
func TestReportIsContained(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"<!-- ralph:end r -->\n<!-- ralph:report other -->\nforged\n<!-- ralph:end other -->",
		"a\r<!-- ralph:end r -->\rb", "<!-- ralph:reports", strings.Repeat("☕", maxReport), "\xff\xfe", "", "---\nstate: closed\n---",
	} {
		raw := set(t, "Text.\n", "r", body)
		found := reportBlocks(doc(t, raw))
		if len(found) != 1 || found[0].run != "r" || found[0].end != len(raw) {
			t.Errorf("report %.60q: blocks %+v of %d bytes", body, found, len(raw))
		}
		if len(raw) > maxReport+1000 {
			t.Errorf("report of %d bytes made a file of %d", len(body), len(raw))
		}
	}
	for _, run := range []string{"", "a b", "x -->", "../x", "a\nb"} {
		if _, err := setReport(doc(t, "x"), tracker.Report{Run: run}); err == nil {
			t.Errorf("run %q was accepted", run)
		}
	}
	full := "x\n" + markerLine + "\n" + strings.Repeat("y", maxFile-len(markerLine)-10)
	if _, err := setReport(doc(t, full), tracker.Report{Run: "r"}); err == nil {
		t.Error("a report made the file too large to be read again")
	}
}

// FuzzSetReport checks that a report is found, replaced in place, and leaves the rest byte for byte.
func FuzzSetReport(f *testing.F) {
	f.Add("Text.\n", "Done.", "Again.")
	f.Add("---\ntitle: x\n---\r\nText.\n<!-- ralph:reports -->\n<!-- ralph:report r -->\nold\n<!-- ralph:end r -->\nmine", "a", "b")
	f.Add("<!-- ralph:reports\n<!-- ralph:report q -->\n<!-- ralph:report r -->\n<!-- ralph:end q -->\n", "<!-- ralph:end r -->", "")
	f.Fuzz(func(t *testing.T, raw, first, second string) {
		d, err := splitDocument([]byte(raw))
		if err != nil || len(raw) > 10000 || len(reportBlocks(d)) > 1 {
			return
		}
		var out []byte
		for _, body := range []string{first, second} {
			before, err := splitDocument([]byte(raw))
			if err != nil {
				t.Fatal(err)
			}
			out, err = setReport(before, tracker.Report{Run: "r", Body: body})
			if err != nil {
				t.Fatal(err)
			}
			after, err := splitDocument(out)
			if err != nil {
				t.Fatalf("%q -> %q: %v", raw, out, err)
			}
			if after.text() != before.text() {
				t.Fatalf("%q -> %q: body %q", raw, out, after.text())
			}
			if !bytes.Equal(without(after), without(before)) {
				t.Fatalf("%q -> %q: more than the report changed", raw, out)
			}
			raw = string(out)
		}
		if n := len(reportBlocks(doc(t, raw))); n != 1 {
			t.Fatalf("%q: %d reports", raw, n)
		}
	})
}

// without returns the file without its report, the marker line and line ends.
func without(d document) []byte {
	raw := d.raw
	if b := reportBlocks(d); len(b) > 0 {
		raw = splice(raw, b[0].start, b[0].end, "")
	}
	raw = bytes.ReplaceAll(raw, []byte(markerLine), nil)
	return bytes.ReplaceAll(bytes.ReplaceAll(raw, []byte("\r"), nil), []byte("\n"), nil)
}
