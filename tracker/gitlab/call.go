package gitlab

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// getOne makes a call that returns one complete object.
func getOne[T any](ctx context.Context, complete func(*T) bool, call func(...gl.RequestOptionFunc) (*T, *gl.Response, error)) (*T, error) {
	v, resp, err := call(gl.WithContext(transport.Expect(ctx, complete)))
	return v, explain(ctx, resp, err)
}

// pageCall requests one page of a list, which the options select.
type pageCall[T any] func(...gl.RequestOptionFunc) ([]*T, *gl.Response, error)

// listAll reads all pages of a list.
func listAll[T any](ctx context.Context, complete func(*T) bool, call pageCall[T]) ([]*T, error) {
	var list []*T
	err := eachPage(ctx, complete, call, func(some []*T) bool {
		list = append(list, some...)
		return true
	})
	return list, err
}

// eachPage passes each page to visit, until visit returns false. It follows GitLab's cursors where the list has them, so that nothing
// is missed or read twice while the list changes, and otherwise counts pages. It takes only the cursor from a link: behind a proxy
// the link's host may be unreachable. With a nil complete, entries may be anything.
func eachPage[T any](ctx context.Context, complete func(*T) bool, call pageCall[T], visit func([]*T) bool) error {
	cursor := ""
	return transport.Pages(transport.ExpectList(ctx, complete), func(ctx context.Context, number, size int) (more bool, err error) {
		query := url.Values{"per_page": {strconv.Itoa(size)}}
		switch {
		case cursor != "":
			query.Set("cursor", cursor)
		case number > 1:
			query.Set("page", strconv.Itoa(number))
		}
		some, resp, err := call(gl.WithContext(ctx), gl.WithKeysetPaginationParameters("?"+query.Encode()))
		if err != nil {
			return false, explain(ctx, resp, err)
		}
		more = resp.NextPage > number
		if next, err := url.Parse(resp.NextLink); err == nil {
			if at := next.Query().Get("cursor"); at != "" && at != cursor {
				cursor, more = at, true
			}
		}
		return visit(some) && more, nil
	})
}

// do makes a request below the project for which go-gitlab has no suitable method.
func (t *Tracker) do(method, path string, opts, out any, options []gl.RequestOptionFunc) (*gl.Response, error) {
	req, err := t.api.NewRequest(method, "projects/"+gl.PathEscape(t.project.Path)+path, opts, options)
	if err != nil {
		return nil, err
	}
	return t.api.Do(req, out)
}

// explain converts go-gitlab's error to one of package tracker.
func explain(ctx context.Context, resp *gl.Response, err error) error {
	var raw *http.Response
	if resp != nil {
		raw = resp.Response
	}
	message := ""
	if refused, ok := errors.AsType[*gl.ErrorResponse](err); ok && json.Valid(refused.Body) { // otherwise an HTML page
		message = refused.Message
	}
	return transport.Explain(ctx, raw, message, err)
}

// issue has the fields of an issue that ralph reads. go-gitlab's type lacks the count of blocked issues, and panics on an issue
// without an ID.
type issue struct {
	IID       int             `json:"iid"`
	ProjectID int             `json:"project_id"`
	Title     string          `json:"title"`
	Body      string          `json:"description"`
	State     string          `json:"state"`
	Type      string          `json:"issue_type"`
	WebURL    string          `json:"web_url"`
	Author    *gl.BasicUser   `json:"author"`
	Assignees []*gl.BasicUser `json:"assignees"`
	Labels    []string        `json:"labels"`
	Created   time.Time       `json:"created_at"`
	Updated   time.Time       `json:"updated_at"`
	Merges    int             `json:"merge_requests_count"`  // number of requests that close it, in any state
	Blocking  int             `json:"blocking_issues_count"` // number of open issues that it blocks; absent where links cannot block
	Milestone struct {
		Title string `json:"title"`
	} `json:"milestone"`
	Confidential bool `json:"confidential"` // visible to its author, its assignees and members with the role Planner or higher
}

// The following functions report whether an answer is complete: it has the fields on which ralph bases decisions. An account in
// another object is either complete or absent, as for deleted accounts.

func named(u *gl.BasicUser) bool { return u == nil || u.ID > 0 && u.Username != "" }

func completeUser(u *gl.User) bool { return u.ID > 0 && u.Username != "" }

// completeIssue also requires labels: without them an issue would no longer seem to be ralph's.
func completeIssue(i *issue) bool {
	return i.IID > 0 && i.ProjectID > 0 && (i.State == "opened" || i.State == "closed") && i.Labels != nil && named(i.Author)
}

func completeNote(n *gl.Note) bool {
	return n.ID > 0 && n.CreatedAt != nil && (n.Author.ID == 0) == (n.Author.Username == "")
}

// completeMerge does not require the head, which a new request lacks at first.
func completeMerge(m *gl.MergeRequest) bool {
	return m.IID > 0 && m.WebURL != "" && m.State != "" && m.SourceBranch != "" && m.TargetBranch != "" && m.TargetProjectID > 0 &&
		m.Labels != nil && named(m.Author) && (m.HeadPipeline == nil || m.HeadPipeline.ID > 0 && m.HeadPipeline.Status != "")
}

func completeEvent(e *gl.LabelEvent) bool {
	return e.ID > 0 && e.Action != "" && e.CreatedAt != nil && (e.User.ID == 0) == (e.User.Username == "") &&
		(e.Label.ID == 0 || e.Label.Name != "")
}

func completeLabel(l *gl.Label) bool { return l.Name != "" }
