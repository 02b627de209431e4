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

// MaxText is the longest text that ralph posts, in bytes. GitHub takes no more.
const MaxText = 65536

// A report's first line names the run, and its mark proves that ralph wrote it about this issue.
var markLine = pattern.Lazy(`^<!-- ralph:report run=[A-Za-z0-9_-]* mac=([0-9a-f]{64}) -->\r?\n`)

// Signer marks reports of one project.
type Signer struct {
	Key   []byte // secret
	Scope string // names the project and its host
}

// Mark is the mark of an issue's report.
func (s Signer) Mark(number int) string {
	h := hmac.New(sha256.New, s.Key)
	_, _ = fmt.Fprintf(h, "ralph report 2\x00%s\x00%d", s.Scope, number) // a hash takes everything
	return hex.EncodeToString(h.Sum(nil))
}

// IsOwn reports whether a text has the first line of a report or a reply. Only a text of ralph's own account is one.
func IsOwn(text string) bool {
	return markLine().MatchString(text) || strings.HasPrefix(text, replyPrefix)
}

// isMark reports that a text has the form of a mark. One of another installation comes from a claim, and whoever may push can have
// written that.
func isMark(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == sha256.Size
}

// Post is a comment on an issue.
type Post struct {
	ID   int64
	Body string
}

// Poster writes the comments of one issue. Find returns the posts of ralph's own account that match, oldest first.
type Poster struct {
	Find   func(ctx context.Context, match func(body string) bool) ([]Post, error)
	Create func(ctx context.Context, body string) error
	Edit   func(ctx context.Context, id int64, body string) error
	Delete func(ctx context.Context, id int64) error
}

// Report writes the report as one post, or edits the one that is there, whichever run it was about. It is never
// posted a second time: after a write that may have happened it looks first. A second post, left by a lost answer, is
// deleted.
func (s Signer) Report(ctx context.Context, number int, r tracker.Report, p Poster) error {
	own := s.Mark(number)
	mark := own
	if isMark(r.Mark) {
		mark = r.Mark
	}
	run := base64.RawURLEncoding.EncodeToString([]byte(r.Run))
	line := fmt.Sprintf("<!-- ralph:report run=%s mac=%s -->\n", run, mark)
	body := line + tracker.Fit(r.Body, MaxText-len(line))
	match := func(text string) bool {
		m := markLine().FindStringSubmatch(text)
		return m != nil && (hmac.Equal([]byte(m[1]), []byte(mark)) || hmac.Equal([]byte(m[1]), []byte(own)))
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
		if err := p.Delete(ctx, second.ID); err != nil && !transport.Missing(err) { // the next report sees whether it is gone
			return fmt.Errorf("delete the second report on #%d: %w", number, err)
		}
	}
	return nil
}
