package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
)

// KeyOf accepts every name that a person may type for a file, and the names that ralph shows.
func TestNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tr := open(t, dir)
	for _, name := range []string{"JIRA-123", "Fix-Login", "two words", "Gr\u00f6\u00dfe", "plain"} {
		write(t, dir, name+".md", "x\n")
	}
	want := map[string]string{
		"JIRA-123": "JIRA-123", "JIRA-123.md": "JIRA-123", "jira-123": "JIRA-123", tracker.Key("JIRA-123"): "JIRA-123",
		filepath.Join(".ralph", "backlog", "Fix-Login.md"): "Fix-Login", "two words": "two words", "plain": "plain", "Plain": "plain",
		"Gr\u00f6\u00dfe": "Gr\u00f6\u00dfe", "Gro\u0308\u00dfe": "Gr\u00f6\u00dfe",
		"JIRA-12": "", "": "", "README": "", "..": "",
	}
	if _, err := os.Stat(filepath.Join(dir, "PLAIN.md")); err != nil { // on a case-sensitive file system
		write(t, dir, "Same.md", "x\n")
		write(t, dir, "SAME.md", "x\n")
		want["Same"], want["SAME"], want["same"] = "Same", "SAME", ""
	}
	for name, file := range want {
		key, ok := tr.KeyOf(t.Context(), name)
		if ok != (file != "") || ok && key != tracker.Key(file) {
			t.Errorf("%q: got %q, %t, want the key of %q", name, key, ok, file)
		}
		if shown, other := tr.Names(t.Context())[key]; ok && (other != (key != file) || other && shown != file) {
			t.Errorf("%q: the name of %s is %q", name, key, shown)
		}
	}
}

// A new file is named after the title, however short that is.
func TestNamesOfNewFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tr := open(t, dir)
	for title, want := range map[string]string{
		"typo": "typo", "fix-login": "fix-login", "a": "a", "Two words": "two-words", "README": "readme-1", "…": "issue-",
		"\u767b\u5f55": "issue-", "documentation": "documentation",
	} {
		issue, err := tr.Create(t.Context(), tr.Text(tracker.Draft{Title: title}))
		if err != nil || issue.Title != title {
			t.Fatalf("%q: %+v, %v", title, issue, err)
		}
		if issue.Key != want && (want != "issue-" || !strings.HasPrefix(issue.Key, want)) {
			t.Errorf("%q is named %q, want %q", title, issue.Key, want)
		}
	}
}
