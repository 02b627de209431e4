package github

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
)

const (
	maxComment = 65536 // characters; ralph counts bytes, which are never fewer
	cutNote    = "\n\n…\n\n(cut here: GitHub takes no more; the whole report is in ralph's log)"
)

// A report starts with its marker: the run, and a proof that ralph wrote it there.
var marker = regexp.MustCompile(`^<!-- ralph:report run=([A-Za-z0-9_-]+) mac=([0-9a-f]{64}) -->\r?\n`)

// Report writes the run's report as one comment, or edits that comment. The comment is ralph's when its own identity
// wrote it and the marker's proof holds; text alone is nothing. A second comment of the same run, left by an answer that
// was lost, is deleted.
func (t *Tracker) Report(ctx context.Context, key string, r tracker.Report) error {
	number, ok := numberOf(key)
	if !ok {
		return notFound(key)
	}
	unlock, err := t.writing.lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	me, err := t.identity(ctx)
	if err != nil {
		return err
	}
	proof := r.Proof
	if proof == "" {
		proof = t.proof(number, r.Run)
	}
	mark := markOf(r.Run, proof)
	body := mark + fit(r.Body, maxComment-len(mark))
	own, err := t.reports(ctx, me, number, r.Run, proof)
	if err != nil {
		return t.below(ctx, key, err)
	}
	if len(own) == 0 {
		return t.firstReport(ctx, me, number, r.Run, proof, body)
	}
	if own[0].Body != body {
		path := t.repo("/issues/comments/%d", own[0].ID)
		if _, err := t.call(forge.Repeatable(ctx), http.MethodPatch, path, map[string]string{"body": body}, new(comment)); err != nil {
			return fmt.Errorf("edit the report on #%s: %w", key, err)
		}
	}
	for _, c := range own[1:] {
		// The next report sees whether it is gone.
		_, err := t.call(ctx, http.MethodDelete, t.repo("/issues/comments/%d", c.ID), nil, nil)
		if err != nil && !forge.Missing(err) {
			return fmt.Errorf("delete the second report on #%s: %w", key, err)
		}
	}
	return nil
}

// firstReport makes the comment. When nobody knows whether it was made, it looks, and never makes it again blindly: the
// caller's next try finds it or makes it.
func (t *Tracker) firstReport(ctx context.Context, me Identity, number int, run, proof, body string) error {
	_, err := t.call(ctx, http.MethodPost, t.repo("/issues/%d/comments", number), map[string]string{"body": body}, new(comment))
	if !forge.Uncertain(err) {
		return t.below(ctx, strconv.Itoa(number), err)
	}
	if own, again := t.reports(ctx, me, number, run, proof); again == nil && len(own) > 0 && own[0].Body == body {
		return nil
	}
	return err
}

// reports are the comments that hold the run's report with that proof, oldest first.
func (t *Tracker) reports(ctx context.Context, me Identity, number int, run, proof string) ([]comment, error) {
	all, err := t.wireComments(ctx, number)
	if err != nil {
		return nil, err
	}
	var own []comment
	for _, c := range all {
		if of, proven, ours := reportOf(me, c); ours && of == run && hmac.Equal([]byte(proven), []byte(proof)) {
			own = append(own, c)
		}
	}
	return own, nil
}

// reportOf reads the marker of a comment that ralph's own identity wrote. What it says is still to be proven.
func reportOf(me Identity, c comment) (run, proof string, ours bool) {
	if c.User == nil || c.User.ID != me.ID {
		return "", "", false
	}
	m := marker.FindStringSubmatch(c.Body)
	if m == nil {
		return "", "", false
	}
	name, err := base64.RawURLEncoding.DecodeString(m[1])
	return string(name), m[2], err == nil
}

// markOf is the first line of a report. Readers do not see it.
func markOf(run, proof string) string {
	return fmt.Sprintf("<!-- ralph:report run=%s mac=%s -->\n", base64.RawURLEncoding.EncodeToString([]byte(run)), proof)
}

// Proof implements tracker.Prover.
func (t *Tracker) Proof(key, run string) string {
	number, _ := numberOf(key) // nobody reports on any other
	return t.proof(number, run)
}

// proof binds a run to this issue of this project.
func (t *Tracker) proof(number int, run string) string {
	h := hmac.New(sha256.New, t.cfg.MarkerKey)
	_, _ = fmt.Fprintf(h, "ralph report 1\x00%s\x00%s\x00%d\x00%s", strings.ToLower(t.cfg.Project.Host),
		strings.ToLower(t.cfg.Project.String()), number, run) // a hash takes everything
	return hex.EncodeToString(h.Sum(nil))
}

// fit cuts a text to the size that GitHub takes.
func fit(body string, room int) string {
	if len(body) <= room {
		return body
	}
	kept := cutAt(body, room-len(cutNote)-8)
	// A fence that the cut leaves open would swallow the note.
	fence := ""
	for line := range strings.Lines(kept) {
		mark := fenceOf(strings.TrimSpace(line))
		switch {
		case fence == "":
			fence = mark
		case mark != "" && strings.HasPrefix(mark, fence):
			fence = ""
		}
	}
	if fence != "" {
		kept = cutAt(kept, len(kept)-len(fence)-1) + "\n" + fence
	}
	return kept + cutNote
}
