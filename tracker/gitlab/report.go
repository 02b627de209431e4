package gitlab

import (
	"context"
	"crypto/hmac"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
)

// Report writes or replaces the run's note. It is found by its marker and by ralph's own account, and never posted a
// second time: after a write that may have happened the issue is looked at before anything else is done. A second note
// of the run, left by an answer that was lost, is deleted.
func (t *Tracker) Report(ctx context.Context, key string, r tracker.Report) error {
	iid, ok := numberOf(key)
	if !ok {
		return notFound(key)
	}
	release, err := t.writing.lock(ctx, key)
	if err != nil {
		return err
	}
	defer release()
	proof := r.Proof
	if proof == "" {
		proof = t.proof(iid, r.Run)
	}
	mark := marker(r.Run, proof)
	body := fit(r.Body, maxText-len(mark)-2) + "\n\n" + mark
	found, err := t.findReport(ctx, iid, r.Run, proof)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		_, err = one[note](ctx, t, http.MethodPost, t.project("/issues/%d/notes", iid), gl.CreateIssueNoteOptions{Body: &body})
		if !forge.Uncertain(err) {
			return t.below(ctx, key, err)
		}
		var look error
		if found, look = t.findReport(ctx, iid, r.Run, proof); look != nil || len(found) == 0 {
			return err
		}
	}
	if found[0].Body != body {
		path := t.project("/issues/%d/notes/%d", iid, found[0].ID)
		if _, err := one[note](ctx, t, http.MethodPut, path, gl.UpdateIssueNoteOptions{Body: &body}); err != nil {
			return fmt.Errorf("edit the report on #%d: %w", iid, err)
		}
	}
	for _, n := range found[1:] {
		_, err := t.call(ctx, http.MethodDelete, t.project("/issues/%d/notes/%d", iid, n.ID), nil, nil, nil)
		if err != nil && !forge.Missing(err) { // the next report sees whether it is gone
			return fmt.Errorf("delete the second report on #%d: %w", iid, err)
		}
	}
	return nil
}

// findReport finds the notes of a run, of which there should be one at most, the oldest first. The newest notes of the
// issue are looked at first, up to the page that has one.
func (t *Tracker) findReport(ctx context.Context, iid int, run, proof string) ([]note, error) {
	self, err := t.identity(ctx)
	if err != nil {
		return nil, err
	}
	var found []note
	query := url.Values{"order_by": {"created_at"}, "sort": {"desc"}}
	err = eachPage(ctx, t, t.project("/issues/%d/notes", iid), query, func(some []note) bool {
		for _, n := range some {
			got, proven, ok := marked(n.Body)
			if ok && got == run && hmac.Equal([]byte(proven), []byte(proof)) && !n.System && n.Author.id() == self.ID {
				found = append([]note{n}, found...)
			}
		}
		return len(found) == 0
	})
	return found, t.below(ctx, strconv.Itoa(iid), err)
}

// isReport reports whether a note is one of ralph's, of whichever installation: by ralph's account, with a marker.
func (t *Tracker) isReport(ctx context.Context, n note) (bool, error) {
	if _, _, ok := marked(n.Body); !ok {
		return false, nil
	}
	self, err := t.identity(ctx)
	return err == nil && n.Author.id() == self.ID, err
}
