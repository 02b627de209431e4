package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
)

// event is a comment in the project's list of events.
type event struct {
	ID   int      `json:"id"`
	Note *gl.Note `json:"note"`
}

func completeEventNote(e *event) bool { return e.ID > 0 && (e.Note == nil || completeNote(e.Note)) }

// Commands reads the project's new comments for commands.
func (t *Tracker) Commands(ctx context.Context, prefix string) ([]tracker.Command, error) {
	if _, err := t.identity(ctx); err != nil { // with its answer the forge's time is known
		return nil, err
	}
	t.mu.Lock()
	read := t.heard
	t.mu.Unlock()
	query := struct {
		Action string `url:"action"`
		After  string `url:"after"`
		Sort   string `url:"sort"`
	}{"commented", t.stack.Now().Add(-forge.LookBack).UTC().Format(time.DateOnly), "desc"}
	var said []forge.Comment
	last, pages := read, 0
	err := each(ctx, completeEventNote, func(o ...gl.RequestOptionFunc) (some []*event, _ *gl.Response, _ error) {
		resp, err := t.do(http.MethodGet, "/events", query, &some, o)
		return some, resp, err
	}, func(some []*event) bool {
		pages++
		for _, e := range some {
			if e.ID <= read {
				return false
			}
			last = max(last, e.ID)
			if s, ok := commentOf(e.Note); ok {
				said = append(said, s)
			}
		}
		if pages == forge.CommentPages {
			t.cfg.Log.Warn("too many new comments; commands in the oldest are not read", "read", len(said))
		}
		return pages < forge.CommentPages
	})
	if err != nil {
		return nil, fmt.Errorf("list new comments: %w", err)
	}
	found, err := t.commands.Find(ctx, said, prefix)
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.heard = last
	}
	return found, err
}

// commentOf reads a public note on an issue or a merge request.
func commentOf(n *gl.Note) (forge.Comment, bool) {
	if n == nil || !public(n) || n.NoteableIID <= 0 || n.NoteableType != "Issue" && n.NoteableType != "MergeRequest" {
		return forge.Comment{}, false
	}
	s := forge.Comment{Number: n.NoteableIID, Request: n.NoteableType == "MergeRequest", By: accountOf(n.Author.ID, n.Author.Username), Body: n.Body, At: *n.CreatedAt}
	s.ID = strings.TrimPrefix(fmt.Sprintf("%s/notes/%d", place(s.Number, s.Request), n.ID), "/")
	return s, true
}

// place is the address of an issue or a merge request below the project.
func place(number int, request bool) string {
	if request {
		return fmt.Sprintf("/merge_requests/%d", number)
	}
	return fmt.Sprintf("/issues/%d", number)
}

// ownHead is the source branch of a merge request of ralph's own account; empty for another's.
func (t *Tracker) ownHead(ctx context.Context, iid int) (string, error) {
	self, err := t.identity(ctx)
	if err != nil {
		return "", err
	}
	m, err := one(ctx, completeMerge, func(o ...gl.RequestOptionFunc) (*gl.MergeRequest, *gl.Response, error) {
		return t.api.MergeRequests.GetMergeRequest(t.project.Path, iid, nil, o...)
	})
	if err != nil || account(m.Author).ID != int64(self.ID) || !own(m) {
		return "", err
	}
	return m.SourceBranch, nil
}

// award is an emoji on a note.
type award struct {
	ID   int           `json:"id"`
	Name string        `json:"name"`
	User *gl.BasicUser `json:"user"`
}

func completeAward(a *award) bool { return a.ID > 0 && a.Name != "" && named(a.User) }

// marked implements forge.Marked. GitLab is asked about one note at a time.
func (t *Tracker) marked(ctx context.Context, ids []string) (map[string]bool, error) {
	marked := map[string]bool{}
	for _, id := range ids {
		yes, err := t.reacted(ctx, id)
		if err != nil && !forge.Missing(err) {
			return nil, err
		}
		marked[id] = yes || err != nil
	}
	return marked, nil
}

// reacted reports whether ralph's account has reacted to a note.
func (t *Tracker) reacted(ctx context.Context, id string) (bool, error) {
	self, err := t.identity(ctx)
	if err != nil {
		return false, err
	}
	list, err := all(ctx, completeAward, func(o ...gl.RequestOptionFunc) (some []*award, _ *gl.Response, _ error) {
		resp, err := t.do(http.MethodGet, "/"+id+"/award_emoji", nil, &some, o)
		return some, resp, err
	})
	return slices.ContainsFunc(list, func(a *award) bool {
		return a.User != nil && a.User.ID == self.ID && (a.Name == string(forge.ReactionTakenUp) || a.Name == string(forge.ReactionRefused))
	}), err
}

// Answer replies, and then reacts to the note: a crash in between repeats it, and the reply is found.
func (t *Tracker) Answer(ctx context.Context, c tracker.Command, a tracker.Answer) error {
	release, err := t.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	self, err := t.identity(ctx)
	if err != nil {
		return err
	}
	where := place(forge.Place(c), c.Request != 0)
	if a.Text != "" {
		if err := forge.Reply(ctx, c.ID, noActions(a.Text), t.poster(where, self.ID)); err != nil {
			return fmt.Errorf("reply at %s: %w", where, err)
		}
	}
	if c.Elsewhere {
		return nil
	}
	_, err = one(ctx, completeAward, func(o ...gl.RequestOptionFunc) (*award, *gl.Response, error) {
		out, name := new(award), map[string]string{"name": string(forge.ReactionTo(a))}
		resp, err := t.do(http.MethodPost, "/"+c.ID+"/award_emoji", name, out, o)
		return out, resp, err
	})
	if err != nil { // GitLab answers "not found" when it is there already, and when the note is gone
		if done, look := t.reacted(forge.Fresh(ctx), c.ID); !done && !forge.Missing(look) {
			return fmt.Errorf("mark a note at %s as answered: %w", where, err)
		}
	}
	t.commands.Done(c.ID)
	return nil
}

// discussions are the threads of a merge request.
func (t *Tracker) discussions(ctx context.Context, iid int) ([]*gl.Discussion, error) {
	complete := func(d *gl.Discussion) bool {
		return d.ID != "" && len(d.Notes) > 0 && forge.Complete(d.Notes, completeNote)
	}
	return all(ctx, complete, func(o ...gl.RequestOptionFunc) ([]*gl.Discussion, *gl.Response, error) {
		return t.api.Discussions.ListMergeRequestDiscussions(t.project.Path, iid, nil, o...)
	})
}

// threads are the discussions of a merge request that can be resolved and are not.
func (t *Tracker) threads(ctx context.Context, iid int) ([]forge.Thread, error) {
	list, err := t.discussions(ctx, iid)
	var out []forge.Thread
	for _, d := range list {
		first := d.Notes[0]
		if !first.Resolvable || first.Resolved {
			continue
		}
		one := forge.Thread{ID: d.ID}
		if p := first.Position; p != nil && p.NewPath != "" {
			one.Where = fmt.Sprintf("%s:%d", p.NewPath, p.NewLine)
		}
		for _, n := range d.Notes {
			if public(n) {
				one.Remarks = append(one.Remarks, forge.Remark{By: accountOf(n.Author.ID, n.Author.Username), Body: n.Body, At: *n.CreatedAt})
			}
		}
		out = append(out, one)
	}
	return out, err
}

// Review implements tracker.Commander.
func (t *Tracker) Review(ctx context.Context, head string) (f tracker.FollowUp, err error) {
	self, err := t.identity(ctx)
	if err != nil {
		return f, err
	}
	m, err := t.findRequest(ctx, tracker.Request{Head: head})
	if err != nil || m == nil || account(m.Author).ID != int64(self.ID) {
		return f, err
	}
	threads, err := t.threads(ctx, m.IID)
	if err != nil {
		return f, fmt.Errorf("read the discussions of !%d: %w", m.IID, err)
	}
	f = tracker.FollowUp{Request: ref(m), Head: head, Commit: m.SHA}
	f.Feedback, f.Threads, f.At, err = t.people.Unanswered(ctx, threads, int64(self.ID), maxFeedback)
	return f, err
}

// Addressed implements tracker.Commander.
func (t *Tracker) Addressed(ctx context.Context, request int, ids []string, commit string) error {
	release, err := t.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	self, err := t.identity(ctx)
	if err != nil {
		return err
	}
	threads, err := t.threads(forge.Fresh(ctx), request)
	for _, th := range threads {
		if err != nil || !slices.Contains(ids, th.ID) || th.AnsweredWith(commit, int64(self.ID)) {
			continue
		}
		body := forge.ReplyBody(commit, "Addressed in "+commit+".")
		_, err = one(ctx, completeNote, func(o ...gl.RequestOptionFunc) (*gl.Note, *gl.Response, error) {
			return t.api.Discussions.AddMergeRequestDiscussionNote(t.project.Path, request, th.ID, &gl.AddMergeRequestDiscussionNoteOptions{Body: &body}, o...)
		})
	}
	if err != nil {
		return fmt.Errorf("answer the discussions of !%d: %w", request, err)
	}
	return nil
}
