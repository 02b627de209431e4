package tracker

import (
	"regexp"
	"strings"
	"testing"
)

func TestKey(t *testing.T) {
	t.Parallel()
	for _, same := range []string{"42", "fix-login", "a.b_c-d", "v1.2", "console", "com10", "0", strings.Repeat("x", 100)} {
		if got := Key(same); got != same {
			t.Errorf("Key(%q) = %q, want it as it is", same, got)
		}
	}
	for name, stem := range map[string]string{
		"": "issue", "Fix Login": "fix-login", "HEAD": "head", "../../etc/passwd": "etc-passwd", "a..b": "a-b", ".hidden": "hidden",
		"-rf": "rf", "x.lock": "x-lock", "dot.": "dot", "con": "con", "nul.txt": "nul-txt", "lpt1": "lpt1", "a/b": "a-b",
		"a@{1}": "a-1", "漢字": "issue", "a\x00b": "a-b", "\xff": "issue", "a~1": "a-1", "a b": "a-b", "owner/repo#7": "owner-repo-7",
		strings.Repeat("x", 101): strings.Repeat("x", 83), "@": "issue", "A": "a", "_a": "a", "naïve": "naive", "Résumé": "resume", "e\u0301te\u0301": "ete", "Straße": "strasse",
	} {
		got := Key(name)
		if !regexp.MustCompile("^" + regexp.QuoteMeta(stem) + "-[0-9a-f]{16}$").MatchString(got) {
			t.Errorf("Key(%q) = %q, want %s and a hash", name, got, stem)
		}
	}
	if Key("Fix") == Key("FIX") || Key("a/b") == Key("a.b.") {
		t.Error("different names share a key")
	}
}

// gitRefuses matches names that git-check-ref-format rejects as the last part of a ref.
var gitRefuses = regexp.MustCompile(`^\.|\.\.|[\x00-\x20\x7f~^:?*\[\\/]|@\{|\.$|\.lock$|^@$|^$`)

func FuzzKey(f *testing.F) {
	for _, s := range []string{"42", "Fix Login", "con", "a-0123456789abcdef", "..", "x.lock", "\xff\x00"} {
		f.Add(s, "Fix login")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		key := Key(a)
		if gitRefuses.MatchString(key) || len(key) > 100 || key != strings.ToLower(key) || key[0] == '-' ||
			!regexp.MustCompile(`^[a-z0-9._-]+$`).MatchString(key) {
			t.Fatalf("Key(%q) = %q is not safe", a, key)
		}
		if regexp.MustCompile(`^(con|prn|aux|nul|com\d|lpt\d)(\.|$)`).MatchString(key) {
			t.Fatalf("Key(%q) = %q is a device on Windows", a, key)
		}
		if again := Key(key); again != key {
			t.Fatalf("Key(%q) = %q, but its own key is %q", a, key, again)
		}
		if a != b && Key(b) == key && a != key && b != key {
			t.Fatalf("%q and %q share the key %q", a, b, key)
		}
		if key != a && !regexp.MustCompile(`-[0-9a-f]{16}$`).MatchString(key) {
			t.Fatalf("Key(%q) = %q was changed and carries no hash", a, key)
		}
	})
}

func TestHasLabel(t *testing.T) {
	t.Parallel()
	i := Issue{Labels: []string{"No-Human", " bug "}}
	for label, want := range map[string]bool{"no-human": true, "BUG": true, "": false, "human": false} {
		if i.HasLabel(label) != want {
			t.Errorf("HasLabel(%q) = %v", label, !want)
		}
	}
}
