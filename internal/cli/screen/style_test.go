package screen

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
)

func TestAge(t *testing.T) {
	t.Parallel()
	for in, want := range map[time.Duration]string{
		0: "0s", 1500 * time.Microsecond: "2ms", 90 * time.Second: "1m30s", 72 * time.Hour: "3d", -time.Second: "0s",
		math.MinInt64: "0s",
	} {
		if got := Age(in); got != want {
			t.Errorf("age(%d) = %q, want %q", in, got, want)
		}
	}
}

// A long key does not shift the other columns.
func TestTableOfLongKeys(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("k", 50)
	var out strings.Builder
	table(&out, [][]string{{"ISSUE", "STATE"}, {key, "merged"}, {"a", "failed"}}, 0, func(_ Style, s string) string { return s })
	pad := strings.Repeat(" ", 47)
	if want := "ISSUE" + pad + "STATE\n" + key + "  merged\na    " + pad + "failed\n"; out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	table(&b, [][]string{{"KEY", "TITLE"}, {"a", "x\ty\nz\x1b[0m"}, {"long-key", ""}}, 0, plain)
	var long bytes.Buffer
	table(&long, [][]string{{"KEY", "VALUE", "FROM"}, {"a", strings.Repeat("v", 500), "x"}, {"b", "short", "y"}}, 0, plain)
	want := "KEY  VALUE" + strings.Repeat(" ", 37) + "FROM\na    " + strings.Repeat("v", 500) + "  x\nb    short" + strings.Repeat(" ", 37) + "y\n"
	if long.String() != want {
		t.Errorf("one long cell: %q, want %q", long.String(), want)
	}
	if want := "KEY       TITLE\na         x y z[0m\nlong-key\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestShortenAndAge(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"abc": "abc", "abcdé": "abc…"} {
		if got := Shorten(in, 4); got != want {
			t.Errorf("shorten(%q) = %q", in, got)
		}
	}
	for d, want := range map[time.Duration]string{
		1500 * time.Microsecond: "2ms", 1250 * time.Millisecond: "1.3s", 90 * time.Second: "1m30s", -90 * time.Second: "0s",
		2*time.Hour + 5*time.Minute + 7*time.Second: "2h5m", 72 * time.Hour: "3d", 0: "0s",
		43900 * time.Millisecond: "44s", time.Hour - time.Millisecond: "1h0m",
	} {
		if got := Age(d); got != want {
			t.Errorf("age(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestColour(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	p := New(&out, &errs, nil)
	if p.Paint(Red, "x") != "x" {
		t.Error("colour without a terminal")
	}
	p.Configure("always", false, false)
	if p.Paint(Red, "x") != "\x1b[31mx\x1b[0m" {
		t.Error("--color always does not")
	}
	p.Configure("always", true, false)
	p.Note("unheard")
	p.Warn("a\x1b[1m\nb")
	if want := "ralph: \x1b[33mwarning:\x1b[0m a[1m b\n"; errs.String() != want {
		t.Errorf("got %q, want %q", errs.String(), want)
	}
}

// On a narrow terminal the last column wraps below itself. Commands are never broken: one that does not fit gets a line of
// its own.
func TestTableFitsTheTerminal(t *testing.T) {
	t.Parallel()
	command := typed("git branch -D ralph/a-long-key")
	rows := [][]string{
		{"KEY", "WHY"}, {"a-long-key", "merge it, or delete it with: " + command + " and `look again`"}, {"b", "short"}, {"c", ""},
	}
	for width, want := range map[int]string{
		0: "KEY         WHY\na-long-key  merge it, or delete it with: git branch -D ralph/a-long-key and `look again`\nb           short\nc\n",
		32: "KEY         WHY\na-long-key  merge it, or delete\n            it with:\n  git branch -D ralph/a-long-key\n            and `look again`\n" +
			"b           short\nc\n",
		20: "KEY         WHY\na-long-key\n  merge it, or\n  delete it with:\n  git branch -D ralph/a-long-key\n  and `look again`\nb           short\nc\n",
	} {
		var b strings.Builder
		table(&b, rows, width, plain)
		if b.String() != want {
			t.Errorf("%d columns:\n%s\nwant\n%s", width, b.String(), want)
		}
	}
}

func plain(_ Style, text string) string { return text }

// Other columns are cut with an ellipsis: free text first, then names longer than 20. Details are dropped before states and
// numbers are cut.
func TestTableCutsWhatHasNoRoom(t *testing.T) {
	t.Parallel()
	rows := [][]string{
		{"ISSUE", "STATE", "STARTED", "TITLE"}, {"fix-the-login-page", "policy-blocked", "just now", "The login page forgets the name"},
		{"b", "succeeded", "47 h ago", "Short"},
	}
	for width, want := range map[int]string{
		0: "ISSUE               STATE           STARTED   TITLE\n" +
			"fix-the-login-page  policy-blocked  just now  The login page forgets the name\n" +
			"b                   succeeded       47 h ago  Short\n",
		60: "ISSUE               STATE           STARTED   TITLE\n" +
			"fix-the-login-page  policy-blocked  just now  The login pag…\n" +
			"b                   succeeded       47 h ago  Short\n",
		50: "ISSUE               STATE           STARTED\n" +
			"fix-the-login-page  policy-blocked  just now\n" +
			"b                   succeeded       47 h ago\n",
		40: "ISSUE               STATE\n" +
			"fix-the-login-page  policy-blocked\n" +
			"b                   succeeded\n",
		30: "ISSUE               STATE\n" +
			"fix-the-login-page  policy-bl…\n" +
			"b                   succeeded\n",
	} {
		var b strings.Builder
		table(&b, rows, width, plain)
		if b.String() != want {
			t.Errorf("%d columns:\n%s\nwant\n%s", width, b.String(), want)
		}
	}
	var sums strings.Builder
	table(&sums, [][]string{{"DAY", "RUNS", "IN", "OUT", "CACHE", "COST", "UNKNOWN"}, {"2026-11-28", "4", "120.3k", "14.2k", "1.2M", "$12.34", "1"}}, 40, plain)
	if want := "DAY         RUNS  IN      OUT    COST\n2026-11-28  4     120.3k  14.2k  $12.34\n"; sums.String() != want {
		t.Errorf("sums:\n%s\nwant\n%s", sums.String(), want)
	}
	var b strings.Builder
	table(&b, rows[:2], 0, func(s Style, text string) string { return "<" + string(s) + ">" + text })
	if !strings.Contains(b.String(), "  <31>policy-blocked  just") {
		t.Errorf("the state has no colour: %s", b.String())
	}
}

func TestAgo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	for d, want := range map[time.Duration]string{
		0: "just now", 59 * time.Second: "just now", 3*time.Minute + 59*time.Second: "3 min ago", 47 * time.Hour: "47 h ago",
		49 * time.Hour: "2 days ago", 40 * 24 * time.Hour: "2026-01-20", -time.Hour: "2026-03-01 13:00:00",
	} {
		if got := Ago(now.Add(-d), now); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}
