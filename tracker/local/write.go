package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
)

var _ tracker.Writer = (*Tracker)(nil)

const (
	longestName = 50                // maximum bytes of the title in a file name
	untitled    = len("issue-") + 8 // bytes of the key in the file name of a title without Latin letters
)

// Text returns the file of a new issue.
func (t *Tracker) Text(d tracker.Draft) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\ntitle: %s\nlabels: %s\n", formatItem(strings.Join(strings.Fields(d.Title), " ")), formatList(d.Labels))
	if d.Priority != 0 {
		fmt.Fprintf(&b, "priority: %d\n", d.Priority)
	}
	if len(d.BlockedBy) > 0 {
		fmt.Fprintf(&b, "blocked_by: %s\n", formatList(d.BlockedBy))
	}
	fmt.Fprintf(&b, "---\n%s\n", strings.Trim(d.Body, "\n"))
	return b.String()
}

// Create writes a new file, named after the title. It creates the folder if that is missing.
func (t *Tracker) Create(ctx context.Context, text string) (tracker.Issue, error) {
	if err := os.MkdirAll(t.dir, 0o777); err != nil {
		return tracker.Issue{}, fmt.Errorf("backlog %s: %w", t.cfg.Dir, err)
	}
	root, err := t.open(ctx)
	if err != nil {
		return tracker.Issue{}, err
	}
	defer root.Close()
	f, err := parseNew(root, []byte(text))
	if err != nil {
		return tracker.Issue{}, tracker.Problem{Where: fmt.Sprintf("new issue:%d", lineIn(err)), Err: err}
	}
	unlock, err := t.lock(ctx)
	if err != nil {
		return tracker.Issue{}, err
	}
	defer unlock()
	name, err := freeName(root, f.issueTitle(""))
	if err != nil {
		return tracker.Issue{}, err
	}
	if err := writeNew(root, name+".md", text); err != nil {
		if at, ok := errors.AsType[*fs.PathError](err); ok { // the message names the path already
			err = at.Err
		}
		return tracker.Issue{}, fmt.Errorf("write %s: %w", filepath.Join(t.cfg.Dir, name+".md"), err)
	}
	return t.Get(ctx, tracker.Key(name))
}

// Read returns a file's text.
func (t *Tracker) Read(ctx context.Context, key string) (string, error) {
	root, err := t.open(ctx)
	if err != nil {
		return "", err
	}
	defer root.Close()
	name, err := find(root, key)
	if err != nil {
		return "", err
	}
	raw, _, err := readFile(root, name)
	if err != nil {
		return "", tracker.Problem{Where: t.location(name, 1), Err: err}
	}
	return string(raw), nil
}

// Rewrite replaces a file's text.
func (t *Tracker) Rewrite(ctx context.Context, key, old, text string) error {
	root, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer root.Close()
	return t.update(ctx, key, func(raw []byte) ([]byte, error) {
		if string(raw) != old {
			return nil, tracker.ErrChanged
		}
		_, err := parseNew(root, []byte(text))
		return []byte(text), err
	})
}

// parseNew parses a text as an issue, and rejects one without a title or with a blocker that does not exist.
func parseNew(root *os.Root, text []byte) (file, error) {
	f, err := parse(text)
	if err != nil {
		return f, err
	}
	if f.issueTitle("") == "" {
		return f, errorAt(1, "it has no title; write title: Fix the login")
	}
	for _, ref := range f.blockedBy {
		if _, err := find(root, tracker.Key(ref.name)); err != nil {
			return f, errorAt(ref.line, "blocked_by %q is not an issue; correct the name or remove it", ref.name)
		}
	}
	return f, nil
}

// freeName returns a name for a title's file that no issue has.
func freeName(root *os.Root, title string) (string, error) {
	words := strings.FieldsFunc(tracker.Latin(strings.ToLower(title)), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	stem := ""
	for _, w := range words {
		if len(stem)+len(w) > longestName && stem != "" {
			break
		}
		stem = strings.TrimPrefix(stem+"-"+w[:min(len(w), longestName)], "-")
	}
	if stem == "" { // no Latin letters
		stem = tracker.Key(title)[:untitled]
	}
	for n := 1; ; n++ {
		name := stem
		if n > 1 || tracker.Key(stem) != stem || !isIssue(stem+".md") {
			name = fmt.Sprintf("%s-%d", stem, n)
		}
		_, err := root.Lstat(name + ".md")
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
}

func writeNew(root *os.Root, name, text string) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil { // for example on a full disk
		return errors.Join(err, root.Remove(name))
	}
	return nil
}
