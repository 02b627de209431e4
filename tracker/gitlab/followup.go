package gitlab

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

const maxLogs = 5 // maximum number of failed jobs whose logs are read

// FollowUps lists ralph's own open requests that need another run, oldest first. A request has one follow-up. Its reason is a
// conflict before a person's request before failed checks; its feedback has all of them. A conflict that GitLab has not
// computed yet does not count.
func (t *Tracker) FollowUps(ctx context.Context, q tracker.FollowUpQuery) ([]tracker.FollowUp, error) {
	return t.FollowUpsOf(ctx, q, func(ctx context.Context, iid int, answered time.Time) (f tracker.FollowUp, err error) {
		m, p, err := t.readWithPipeline(ctx, iid)
		if err != nil || m.State != "opened" {
			return f, err
		}
		conflict, checks := forge.Cause{Why: tracker.Conflict}, forge.Cause{Why: tracker.ChecksFailed}
		if m.HasConflicts || m.DetailedMergeStatus == "conflict" {
			conflict.Text, conflict.At = fmt.Sprintf("The branch conflicts with %s.", m.TargetBranch), timeOrZero(m.UpdatedAt)
		}
		review, err := t.requestedChanges(ctx, m, answered)
		if err != nil {
			return f, err
		}
		if p != nil && p.Status == "failed" {
			checks.At = timeOrZero(p.UpdatedAt)
			checks.Text, err = t.failedJobs(ctx, p)
		}
		return requestOf(m).FollowUp(conflict, review, checks), err
	})
}

func timeOrZero(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return *at
}

// requestedChanges collects the comments of trusted people since the head commit was pushed, or since ralph's last answer if that is
// earlier, because somebody else may have pushed. It takes notes in unresolved discussions, and other notes only if a reviewer
// formally requests changes. The time of the push is GitLab's, since the agent could choose the commit's.
func (t *Tracker) requestedChanges(ctx context.Context, m *gl.MergeRequest, answered time.Time) (forge.Cause, error) {
	out := forge.Cause{Why: tracker.ChangesRequested}
	pushedAt, err := t.pushTime(ctx, m)
	if err != nil {
		return out, err
	}
	if !answered.IsZero() && answered.Before(pushedAt) {
		pushedAt = answered
	}
	threads, err := t.discussions(ctx, m.IID)
	if err != nil {
		return out, err
	}
	formal := m.DetailedMergeStatus == "requested_changes"
	var open []*gl.Note
	in := map[int]string{} // IDs of threads, by note
	for _, d := range threads {
		for _, n := range d.Notes {
			wanted := n.Resolvable && !n.Resolved || !n.Resolvable && formal
			if wanted && !forge.IsCommand(n.Body) && !forge.IsOwn(n.Body) && isPublic(n) && n.CreatedAt.After(pushedAt) {
				open = append(open, n)
				if n.Resolvable {
					in[n.ID] = d.ID
				}
			}
		}
	}
	slices.SortStableFunc(open, func(a, b *gl.Note) int { return a.CreatedAt.Compare(*b.CreatedAt) })
	trusted, err := t.People.Trusted(ctx, forge.LatestFirst(open, authorOf))
	if err != nil {
		return out, err
	}
	for _, n := range open {
		if !trusted[int64(n.Author.ID)] {
			continue
		}
		where := ""
		if p := n.Position; p != nil && p.NewPath != "" {
			where = fmt.Sprintf(" on %s:%d", p.NewPath, p.NewLine)
		}
		part := fmt.Sprintf("%s%s says:\n%s", n.Author.Username, where, tracker.Cut(n.Body, forge.MaxPart))
		if out.Text != "" && len(out.Text)+len(part) > forge.MaxFeedback/2 && n.CreatedAt.After(out.At) {
			break // the next run gets the later notes
		}
		out.Text += "\n\n" + part
		if id := in[n.ID]; id != "" && !slices.Contains(out.Threads, id) {
			out.Threads = append(out.Threads, id)
		}
		out.At = forge.Later(out.At, *n.CreatedAt)
	}
	return out, nil
}

// pushTime returns when the head commit of the request was pushed.
func (t *Tracker) pushTime(ctx context.Context, m *gl.MergeRequest) (at time.Time, err error) {
	complete := func(v *gl.MergeRequestDiffVersion) bool { return v.HeadCommitSHA != "" && v.CreatedAt != nil }
	versions, err := listAll(ctx, complete, func(o ...gl.RequestOptionFunc) ([]*gl.MergeRequestDiffVersion, *gl.Response, error) {
		return t.api.MergeRequests.GetMergeRequestDiffVersions(t.project.Path, m.IID, nil, o...)
	})
	for _, v := range versions {
		if v.HeadCommitSHA == m.SHA && v.CreatedAt.After(at) {
			at = *v.CreatedAt
		}
	}
	return at, err
}

// failedJobs describes the failed required jobs of a pipeline, with the end of their logs.
func (t *Tracker) failedJobs(ctx context.Context, p *gl.Pipeline) (string, error) {
	scope := &gl.ListJobsOptions{Scope: &[]gl.BuildStateValue{gl.Failed}}
	complete := func(j *gl.Job) bool { return j.ID > 0 && j.Status != "" }
	jobs, err := listAll(ctx, complete, func(o ...gl.RequestOptionFunc) ([]*gl.Job, *gl.Response, error) {
		return t.api.Jobs.ListPipelineJobs(t.project.Path, p.ID, scope, o...)
	})
	if err != nil && transport.Status(err) != http.StatusForbidden && transport.Status(err) != http.StatusNotFound {
		return "", err
	}
	var parts []string
	for _, j := range jobs {
		if j.AllowFailure || j.Status != "failed" {
			continue
		}
		text := fmt.Sprintf("Job %s of stage %s failed (%s).", j.Name, j.Stage, j.FailureReason)
		if len(parts) < maxLogs {
			log, err := t.jobLog(ctx, j.ID)
			if err != nil {
				return "", err
			}
			if log != "" {
				text += " The end of its log:\n" + log
			}
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return fmt.Sprintf("Pipeline %d failed: %s", p.ID, p.WebURL), nil
	}
	return strings.Join(parts, "\n\n"), nil
}

// jobLog returns the end of a job's log; empty if it was erased or is not readable.
func (t *Tracker) jobLog(ctx context.Context, id int) (string, error) {
	r, resp, err := t.api.Jobs.GetTraceFile(t.project.Path, id, gl.WithContext(transport.LastBytes(ctx, forge.MaxPart)))
	err = explain(ctx, resp, err)
	switch transport.Status(err) {
	case http.StatusForbidden, http.StatusNotFound:
		return "", nil
	}
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	text := strings.ToValidUTF8(string(b), "")
	if _, rest, cut := strings.Cut(text, "\n"); cut && len(b) >= forge.MaxPart { // the first line is incomplete
		text = rest
	}
	return text, err
}
