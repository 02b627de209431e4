package forge

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// MaxText is the maximum length of a text that ralph posts, in bytes: GitHub's limit.
const MaxText = 65536

// markLine is a report's first line: the run, and a mark that proves that ralph wrote the report about this issue.
var markLine = pattern.Lazy(`^<!-- ralph:report run=[A-Za-z0-9_-]* mac=([0-9a-f]{64}) -->\r?\n`)

// Signer computes the marks of one project's reports.
type Signer struct {
	Key   []byte // secret
	Scope string // project and host
}

// Mark returns the mark of an issue's report.
func (s Signer) Mark(number int) string {
	h := hmac.New(sha256.New, s.Key)
	_, _ = fmt.Fprintf(h, "ralph report 2\x00%s\x00%d", s.Scope, number) // a hash never fails
	return hex.EncodeToString(h.Sum(nil))
}

// IsOwn reports whether a text has the first line of a report or reply. The caller checks that ralph's account wrote it.
func IsOwn(text string) bool {
	return markLine().MatchString(text) || strings.HasPrefix(text, replyPrefix)
}

// isMark reports whether a text has the form of a mark. The mark of another installation comes from a claim, which everybody
// with push permission can forge.
func isMark(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == sha256.Size
}

// Post is a comment on an issue.
type Post struct {
	ID   int64
	Body string
}

// Poster writes the comments on one issue. Find returns the matching posts of ralph's own account, oldest first.
type Poster struct {
	Find   func(ctx context.Context, match func(body string) bool) ([]Post, error)
	Create func(ctx context.Context, body string) error
	Edit   func(ctx context.Context, id int64, body string) error
	Delete func(ctx context.Context, id int64) error
}

// Report writes the report as one post, or edits the existing one, whichever run that was about. To avoid a second
// post, it looks for the first after a write with an uncertain effect. It deletes a second post that a lost answer left.
func (s Signer) Report(ctx context.Context, number int, r tracker.Report, p Poster) error {
	ownMark := s.Mark(number)
	mark := ownMark
	if isMark(r.Mark) {
		mark = r.Mark
	}
	run := base64.RawURLEncoding.EncodeToString([]byte(r.Run))
	line := fmt.Sprintf("<!-- ralph:report run=%s mac=%s -->\n", run, mark)
	body := line + tracker.Fit(r.Body, MaxText-len(line))
	match := func(text string) bool {
		m := markLine().FindStringSubmatch(text)
		return m != nil && (hmac.Equal([]byte(m[1]), []byte(mark)) || hmac.Equal([]byte(m[1]), []byte(ownMark)))
	}
	found, err := p.Find(ctx, match)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		failed := p.Create(ctx, body)
		if !transport.Uncertain(failed) {
			return failed
		}
		if found, err = p.Find(ctx, match); err != nil || len(found) == 0 {
			return failed
		}
	}
	if found[0].Body != body {
		if err := p.Edit(ctx, found[0].ID, body); err != nil {
			return fmt.Errorf("edit the report on #%d: %w", number, err)
		}
	}
	for _, second := range found[1:] {
		if err := p.Delete(ctx, second.ID); err != nil && !transport.Missing(err) { // the next report retries an uncertain deletion
			return fmt.Errorf("delete the second report on #%d: %w", number, err)
		}
	}
	return nil
}
