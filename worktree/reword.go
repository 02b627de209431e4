package worktree

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/internal/inert"
)

// An agent's messages go out with its commits, to forges that act on them: closing keywords, mentions, [skip ci]. So what
// an agent has committed is taken in with the same words, out of force. A commit whose message changes is another
// commit, and so are those after it. This is made where a worktree is looked at, so that nobody gets to see the others;
// it is a function of the commits alone, so that a second look finds the same ones.

// reword returns the commit that stands for head, itself where nothing in it acts. Commits that were taken in before, and
// those that are a person's, stay as they are; so does what replayed has, unless that is empty.
func (t *Tree) reword(ctx context.Context, head, replayed string) (string, error) {
	span, err := t.readSpan(ctx, head)
	if err != nil {
		return "", err
	}
	known, err := t.knownRefs(ctx)
	if err != nil {
		return "", err
	}
	done := span.reach(t.Start())
	for _, before := range []string{known.work, replayed} {
		maps.Copy(done, span.reach(before))
	}
	var fresh []string
	for _, c := range span.commits {
		if !done[c.SHA] {
			fresh = append(fresh, c.SHA)
		}
	}
	objects, err := t.repo.readObjects(ctx, fresh)
	if err != nil {
		return "", fmt.Errorf("read commits: %w", err)
	}
	loud := map[string]bool{}
	for _, commit := range fresh {
		if err := context.Cause(ctx); err != nil {
			return "", fmt.Errorf("look at messages: %w", err)
		}
		if acts(objects[commit]) {
			loud[commit] = true
		}
	}
	if len(loud) == 0 {
		return head, nil
	}
	return t.rewordOwn(ctx, head, []string{known.work, replayed}, objects, loud)
}

// rewordOwn writes the commits anew that are only the agent's, and loud or after one that is.
func (t *Tree) rewordOwn(ctx context.Context, head string, before []string, objects map[string]string, loud map[string]bool) (string, error) {
	own, err := t.own(ctx, head, before, func(commit string) bool { return loud[commit] })
	if err != nil {
		return "", err
	}
	renamed := map[string]string{}
	for _, commit := range own {
		if err := context.Cause(ctx); err != nil {
			return "", fmt.Errorf("reword: %w", err)
		}
		object, ok := objects[commit]
		if !ok {
			return "", fmt.Errorf("commit %s is nowhere", short(commit))
		}
		next := rewordCommit(object, renamed)
		if next == object {
			continue
		}
		if renamed[commit], err = t.repo.objects.write("commit", []byte(next)); err != nil {
			return "", err
		}
	}
	if next, ok := renamed[head]; ok {
		return next, nil
	}
	return head, nil
}

// acts reports whether the commit has to be written anew for its own sake.
func acts(object string) bool { return rewordCommit(object, nil) != object }

// rewordCommit returns a commit object with its message out of force, in an encoding that hides nothing, and its parents'
// new names. A signature would not hold any more and is left out.
func rewordCommit(object string, renamed map[string]string) string {
	header, message, ok := strings.Cut(object, "\n\n")
	if !ok {
		return object
	}
	was := strings.Split(header, "\n")
	lines, text := inUTF8(was, message)
	changed := len(lines) != len(was)
	for i, line := range lines {
		if parent, ok := strings.CutPrefix(line, "parent "); ok && renamed[parent] != "" {
			lines[i], changed = "parent "+renamed[parent], true
		}
	}
	quiet := inert.Text(shortened(text))
	if !changed && quiet == message {
		return object
	}
	return strings.Join(unsigned(lines), "\n") + "\n\n" + quiet
}

// messageLimit is the most of a message that is taken in, in bytes: nobody reads more, and looking at it takes time.
const messageLimit = 256 << 10

// shortened is the message, or its beginning and a word about the rest.
func shortened(message string) string {
	if len(message) <= messageLimit {
		return message
	}
	end := messageLimit - 100
	for !utf8.RuneStart(message[end]) && end > messageLimit-104 {
		end--
	}
	return fmt.Sprintf("%s\n\n(ralph has left out the other %d bytes of this message)\n", message[:end], len(message)-end)
}

// unsigned leaves signatures, which go over several lines, and empty lines out of a header.
func unsigned(lines []string) []string {
	var out []string
	signature := false
	for _, line := range lines {
		signature = strings.HasPrefix(line, "gpgsig") || signature && strings.HasPrefix(line, " ")
		if !signature && line != "" {
			out = append(out, line)
		}
	}
	return out
}

// readObjects reads whole commits: those in files of their own without git, which an agent's new ones mostly are.
func (r *Repo) readObjects(ctx context.Context, commits []string) (map[string]string, error) {
	objects := map[string]string{}
	var rest []string
	for _, commit := range commits {
		if content, ok := r.objects.readRaw(commit); ok && !r.objects.sha256 {
			objects[commit] = string(content)
		} else {
			rest = append(rest, commit)
		}
	}
	more, err := r.git.readCommits(ctx, rest)
	for commit, object := range more {
		objects[commit] = object
	}
	return objects, err
}
