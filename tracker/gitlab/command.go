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
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// event is a comment in the project's list of events.
type event struct {
	ID   int      `json:"id"`
	Note *gl.Note `json:"note"`
}

func completeEventNote(e *event) bool { return e.ID > 0 && (e.Note == nil || completeNote(e.Note)) }

// Commands searches the project's new comments for commands.
func (t *Tracker) Commands(ctx context.Context, prefix string) ([]tracker.Command, error) {
	if _, err := t.Identity(ctx); err != nil { // the answer also tells the forge's time
		return nil, err
	}
	t.mu.Lock()
	lastRead := t.lastEvent
	t.mu.Unlock()
	query := struct {
		Action string `url:"action"`
		After  string `url:"after"`
		Sort   string `url:"sort"`
	}{"commented", t.Stack.Now().Add(-forge.LookBack).UTC().Format(time.DateOnly), "desc"}
	var comments []forge.Comment
	last, count := lastRead, 0
	err := eachPage(ctx, completeEventNote, func(o ...gl.RequestOptionFunc) (some []*event, _ *gl.Response, _ error) {
		resp, err := t.do(http.MethodGet, "/events", query, &some, o)
		return some, resp, err
	}, func(some []*event) bool {
		count += len(some)
		for _, e := range some {
			if e.ID <= lastRead {
				return false
			}
			last = max(last, e.ID)
			if s, ok := commentOf(e.Note); ok {
				comments = append(comments, s)
			}
		}
		if count >= forge.MaxNewComments {
			t.Settings.Log.Warn("too many new comments; commands in the oldest are not read", "read", count)
		}
		return count < forge.MaxNewComments
	})
	if err != nil {
		return nil, fmt.Errorf("list new comments: %w", t.Listed(ctx, err))
	}
	found, err := t.Inbox.Find(ctx, comments, prefix)
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.lastEvent = last
	}
	return found, err
}

// commentOf converts a public note on an issue or a merge request.
func commentOf(n *gl.Note) (forge.Comment, bool) {
	if n == nil || !isPublic(n) || n.NoteableIID <= 0 || n.NoteableType != "Issue" && n.NoteableType != "MergeRequest" {
		return forge.Comment{}, false
	}
	s := forge.Comment{
		Number:  n.NoteableIID,
		Request: n.NoteableType == "MergeRequest",
		By:      authorOf(n),
		Body:    forge.CommandIn(n.Body),
		At:      *n.CreatedAt,
	}
	s.ID = strings.TrimPrefix(fmt.Sprintf("%s/notes/%d", apiPath(s.Number, s.Request), n.ID), "/")
	return s, true
}

// apiPath returns the path of an issue or merge request below the project.
func apiPath(number int, request bool) string {
	if request {
		return fmt.Sprintf("/merge_requests/%d", number)
	}
	return fmt.Sprintf("/issues/%d", number)
}

func completeAward(a *gl.AwardEmoji) bool {
	return a.ID > 0 && a.Name != "" && (a.User.ID == 0) == (a.User.Username == "")
}

// marked needs one request per note.
func (t *Tracker) marked(ctx context.Context, ids []string) (map[string]bool, error) {
	marked := map[string]bool{}
	for _, id := range ids {
		yes, err := t.hasReacted(ctx, id)
		if err != nil && !transport.Missing(err) {
			return nil, err
		}
		marked[id] = yes || err != nil
	}
	return marked, nil
}

// hasReacted reports whether ralph's account has reacted to a note.
func (t *Tracker) hasReacted(ctx context.Context, id string) (bool, error) {
	self, err := t.Identity(ctx)
	if err != nil {
		return false, err
	}
	list, err := listAll(ctx, completeAward, func(o ...gl.RequestOptionFunc) (some []*gl.AwardEmoji, _ *gl.Response, _ error) {
		resp, err := t.do(http.MethodGet, "/"+id+"/award_emoji", nil, &some, o)
		return some, resp, err
	})
	return slices.ContainsFunc(list, func(a *gl.AwardEmoji) bool {
		return int64(a.User.ID) == self.ID && (a.Name == string(forge.ReactionTakenUp) || a.Name == string(forge.ReactionRefused))
	}), err
}

// react adds an emoji to a note. GitLab answers "not found" if the emoji exists already, and if the note was deleted.
func (t *Tracker) react(ctx context.Context, id string, r forge.Reaction) error {
	_, err := getOne(ctx, completeAward, func(o ...gl.RequestOptionFunc) (*gl.AwardEmoji, *gl.Response, error) {
		out := new(gl.AwardEmoji)
		resp, err := t.do(http.MethodPost, "/"+id+"/award_emoji", map[string]string{"name": string(r)}, out, o)
		return out, resp, err
	})
	if err != nil {
		if done, look := t.hasReacted(transport.WithoutCache(ctx), id); done || transport.Missing(look) {
			return nil
		}
	}
	return err
}

// discussions returns the threads of a merge request. It keeps at most forge.MaxPart bytes of each note.
func (t *Tracker) discussions(ctx context.Context, iid int) (list []*gl.Discussion, err error) {
	complete := func(d *gl.Discussion) bool {
		return d.ID != "" && len(d.Notes) > 0 && transport.Complete(d.Notes, completeNote)
	}
	err = eachPage(ctx, complete, func(o ...gl.RequestOptionFunc) ([]*gl.Discussion, *gl.Response, error) {
		return t.api.Discussions.ListMergeRequestDiscussions(t.project.Path, iid, nil, o...)
	}, func(some []*gl.Discussion) bool {
		for _, d := range some {
			for _, n := range d.Notes {
				n.Body = forge.Start(n.Body, forge.MaxPart)
			}
		}
		list = append(list, some...)
		return true
	})
	return list, err
}

// threads returns the resolvable, unresolved discussions of a merge request.
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
			if isPublic(n) {
				one.Remarks = append(one.Remarks, forge.Remark{By: authorOf(n), Body: n.Body, At: *n.CreatedAt})
			}
		}
		out = append(out, one)
	}
	return out, err
}

// replyToThread adds a note to a discussion.
func (t *Tracker) replyToThread(ctx context.Context, request int, id, body string) error {
	_, err := getOne(ctx, completeNote, func(o ...gl.RequestOptionFunc) (*gl.Note, *gl.Response, error) {
		return t.api.Discussions.AddMergeRequestDiscussionNote(t.project.Path, request, id, &gl.AddMergeRequestDiscussionNoteOptions{Body: &body}, o...)
	})
	return err
}
