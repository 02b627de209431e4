package pool

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
)

// RequestTemplate is the body of a pull or merge request where the user has none of his own. The closing keyword stands
// here and nowhere else: text of agents and issues has none that works.
const RequestTemplate = `Closes {{issue_id}}

{{report}}
`

// titleLimit is the length of a request's title, in bytes.
const titleLimit = 200

// request pushes the branch and opens the pull or merge request for it, or updates the one that is open.
func (w *worker) request(ctx context.Context, s *session) error {
	if err := w.push(ctx, s); err != nil {
		return err
	}
	v, c := &w.rec.Verdict, w.p.cfg
	v.Published = "" // not before the request is there too
	body, err := w.requestBody(ctx)
	if err != nil {
		return err
	}
	target := c.Requests.Target
	if target == "" {
		target = strings.TrimPrefix(s.base.Name, c.Repo.Remote()+"/")
	}
	requester, ok := tracker.As[tracker.Requester](c.Tracker)
	if !ok { // New has checked it, but for another way of publishing
		return fmt.Errorf("request: tracker %s has none", c.Tracker.Name())
	}
	ref, err := requester.OpenRequest(ctx, tracker.Request{
		Key: w.rec.Key, Head: w.rec.Branch, Base: target, Title: w.requestTitle(), Body: body,
		Draft: v.Outcome != Succeeded, Labels: c.Requests.Labels, Reviewers: c.Requests.Reviewers,
		Assignees: c.Requests.Assignees,
	})
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	v.Request = Request{Number: ref.Number, URL: ref.URL, Draft: ref.Draft}
	v.Published = "request " + ref.URL
	if ref.Draft {
		v.Published = "draft " + v.Published
	}
	return nil
}

// requestTitle is the issue's title, which forges show as it is. A title of which nothing can be seen is none.
func (w *worker) requestTitle() string {
	return cmp.Or(tracker.Plain(w.issue.Title, titleLimit), "Issue "+w.issueID())
}

// requestBody renders the template. Text of others is quoted: whatever acts is the template's own.
func (w *worker) requestBody(ctx context.Context) (string, error) {
	prompt := w.p.cfg.Requests.Body
	prompt.Builtin = map[string]string{
		"issue_key": w.rec.Key, "issue_id": w.issueID(), "issue_title": tracker.QuoteLine(w.issue.Title, titleLimit),
		"issue_url": w.rec.URL, "branch": w.rec.Branch, "base": w.rec.Base, "report": w.body(),
	}
	return prompt.Render(ctx, nil, nil)
}

// issueID is what the tracker calls the issue; after a crash only the key is known for sure.
func (w *worker) issueID() string {
	if w.issue.ID != "" {
		return w.issue.ID
	}
	return w.rec.Key
}

func requestKeys() []string {
	return []string{"issue_key", "issue_id", "issue_title", "issue_url", "branch", "base", "report"}
}
