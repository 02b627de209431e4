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
)

// Feedback goes into a prompt; GitLab keeps the rest.
const (
	maxFeedback = 32 << 10 // bytes in all
	maxPart     = 8 << 10  // bytes of one log or note
	maxLogs     = 5        // failed jobs whose logs are read
)

// FollowUps lists ralph's own open requests that need another run, oldest first. A request has one follow-up: a conflict
// counts first, then a person's request, then checks; its feedback has all of them. A conflict that GitLab has not
// computed yet is none.
func (t *Tracker) FollowUps(ctx context.Context, q tracker.FollowUpQuery) ([]tracker.FollowUp, error) {
	mine, err := t.ownRequests(ctx, q.Prefix)
	if err != nil {
		return nil, err
	}
	return forge.Each(ctx, mine, func(ctx context.Context, m *gl.MergeRequest) (tracker.FollowUp, bool, error) {
		key := strings.TrimPrefix(m.SourceBranch, q.Prefix)
		answered, err := q.AnsweredFor(ctx, key)
		if err != nil {
			return tracker.FollowUp{}, false, err
		}
		f, err := t.followUp(ctx, m.IID, answered)
		if err != nil {
			return f, false, fmt.Errorf("check merge request !%d: %w", m.IID, err)
		}
		f.Key = key
		return f, f.Reason != "", nil
	})
}

// ownRequests are the open merge requests of ralph's account whose source branch has the prefix.
func (t *Tracker) ownRequests(ctx context.Context, prefix string) ([]*gl.MergeRequest, error) {
	self, err := t.identity(ctx)
	if err != nil {
		return nil, err
	}
	opts := gl.ListProjectMergeRequestsOptions{AuthorID: gl.Ptr(self.ID), OrderBy: gl.Ptr("created_at"), Sort: gl.Ptr("asc")}
	list, err := all(ctx, completeMerge, t.requests(opts))
	seen := map[int]bool{}
	return slices.DeleteFunc(list, func(m *gl.MergeRequest) bool {
		key, ours := strings.CutPrefix(m.SourceBranch, prefix)
		again := seen[m.IID]
		seen[m.IID] = true
		return !ours || key == "" || again || account(m.Author).ID != int64(self.ID) || !own(m)
	}), err
}

// Requests implements tracker.RequestLister.
func (t *Tracker) Requests(ctx context.Context, prefix string) (map[string]tracker.RequestRef, error) {
	mine, err := t.ownRequests(ctx, prefix)
	open := map[string]tracker.RequestRef{}
	for _, m := range mine {
		open[strings.TrimPrefix(m.SourceBranch, prefix)] = ref(m)
	}
	return open, err
}

// followUp checks one request, where ralph has answered people up to a time; zero: not known. Its reason is empty when it
// needs nothing.
func (t *Tracker) followUp(ctx context.Context, iid int, answered time.Time) (f tracker.FollowUp, err error) {
	m, err := one(ctx, completeMerge, func(o ...gl.RequestOptionFunc) (*gl.MergeRequest, *gl.Response, error) {
		return t.api.MergeRequests.GetMergeRequest(t.project.Path, iid, nil, o...)
	})
	if err != nil || m.State != "opened" {
		return f, err
	}
	f = tracker.FollowUp{Request: ref(m), Head: m.SourceBranch, Commit: m.SHA}
	var parts []string
	note := func(reason tracker.FollowUpReason, feedback string, at *time.Time) {
		if f.Reason == "" {
			f.Reason = reason
		}
		if at != nil && at.After(f.At) {
			f.At = *at
		}
		parts = append(parts, feedback)
	}
	if m.HasConflicts || m.DetailedMergeStatus == "conflict" {
		note(tracker.Conflict, fmt.Sprintf("The branch conflicts with %s.", m.TargetBranch), m.UpdatedAt)
	}
	requested, threads, at, err := t.requested(ctx, m, answered)
	if err != nil {
		return f, err
	}
	f.Threads = threads
	if requested != "" {
		note(tracker.ChangesRequested, requested, nil)
	}
	if p := m.HeadPipeline; p != nil && p.Status == "failed" {
		log, err := t.failures(ctx, p)
		if err != nil {
			return f, err
		}
		note(tracker.ChecksFailed, log, p.UpdatedAt)
	}
	if requested != "" { // a later time would answer what did not fit
		f.At = at
	}
	f.Feedback = tracker.Cut(strings.Join(parts, "\n\n"), maxFeedback)
	return f, nil
}

// requested collects what trusted people wrote since the head commit was pushed, or before that and after what ralph has
// answered, for the push may have been another's: open discussions that can be resolved, and their other notes when a
// reviewer formally requests changes. The time of the push is GitLab's, not the commit's, which the agent could choose.
func (t *Tracker) requested(ctx context.Context, m *gl.MergeRequest, answered time.Time) (text string, ids []string, last time.Time, err error) {
	pushed, err := t.pushed(ctx, m)
	if err != nil {
		return "", nil, last, err
	}
	if !answered.IsZero() && answered.Before(pushed) {
		pushed = answered
	}
	threads, err := t.discussions(ctx, m.IID)
	if err != nil {
		return "", nil, last, err
	}
	formal := m.DetailedMergeStatus == "requested_changes"
	var open []*gl.Note
	in := map[int]string{} // threads by note
	for _, d := range threads {
		for _, n := range d.Notes {
			wanted := n.Resolvable && !n.Resolved || !n.Resolvable && formal
			if _, _, command := tracker.ParseCommand(n.Body); wanted && !command && !forge.IsOwn(n.Body) && public(n) && n.CreatedAt.After(pushed) {
				open = append(open, n)
				if n.Resolvable {
					in[n.ID] = d.ID
				}
			}
		}
	}
	slices.SortStableFunc(open, func(a, b *gl.Note) int { return a.CreatedAt.Compare(*b.CreatedAt) })
	var people []forge.Account
	for _, n := range slices.Backward(open) {
		people = append(people, accountOf(n.Author.ID, n.Author.Username))
	}
	trusted, err := t.people.Trusted(ctx, people)
	if err != nil {
		return "", nil, last, err
	}
	for _, n := range open {
		if !trusted[int64(n.Author.ID)] {
			continue
		}
		where := ""
		if p := n.Position; p != nil && p.NewPath != "" {
			where = fmt.Sprintf(" on %s:%d", p.NewPath, p.NewLine)
		}
		part := fmt.Sprintf("%s%s says:\n%s", n.Author.Username, where, tracker.Cut(n.Body, maxPart))
		if text != "" && len(text)+len(part) > maxFeedback/2 && n.CreatedAt.After(last) {
			break // the next run gets what was said after that
		}
		text += "\n\n" + part
		if id := in[n.ID]; id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		if n.CreatedAt.After(last) {
			last = *n.CreatedAt
		}
	}
	return strings.TrimPrefix(text, "\n\n"), ids, last, nil
}

// pushed is when the head commit of the request arrived.
func (t *Tracker) pushed(ctx context.Context, m *gl.MergeRequest) (at time.Time, err error) {
	complete := func(v *gl.MergeRequestDiffVersion) bool { return v.HeadCommitSHA != "" && v.CreatedAt != nil }
	versions, err := all(ctx, complete, func(o ...gl.RequestOptionFunc) ([]*gl.MergeRequestDiffVersion, *gl.Response, error) {
		return t.api.MergeRequests.GetMergeRequestDiffVersions(t.project.Path, m.IID, nil, o...)
	})
	for _, v := range versions {
		if v.HeadCommitSHA == m.SHA && v.CreatedAt.After(at) {
			at = *v.CreatedAt
		}
	}
	return at, err
}

// failures describes the required jobs of a pipeline that failed, with the end of their logs.
func (t *Tracker) failures(ctx context.Context, p *gl.Pipeline) (string, error) {
	scope := &gl.ListJobsOptions{Scope: &[]gl.BuildStateValue{gl.Failed}}
	complete := func(j *gl.Job) bool { return j.ID > 0 && j.Status != "" }
	jobs, err := all(ctx, complete, func(o ...gl.RequestOptionFunc) ([]*gl.Job, *gl.Response, error) {
		return t.api.Jobs.ListPipelineJobs(t.project.Path, p.ID, scope, o...)
	})
	if err != nil && forge.Status(err) != http.StatusForbidden && forge.Status(err) != http.StatusNotFound {
		return "", err
	}
	var parts []string
	for _, j := range jobs {
		if j.AllowFailure || j.Status != "failed" {
			continue
		}
		text := fmt.Sprintf("Job %s of stage %s failed (%s).", j.Name, j.Stage, j.FailureReason)
		if len(parts) < maxLogs {
			log, err := t.log(ctx, j.ID)
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

// log is the end of a job's log; empty where it was erased or may not be read.
func (t *Tracker) log(ctx context.Context, id int) (string, error) {
	r, resp, err := t.api.Jobs.GetTraceFile(t.project.Path, id, gl.WithContext(forge.LastBytes(ctx, maxPart)))
	err = explain(ctx, resp, err)
	switch forge.Status(err) {
	case http.StatusForbidden, http.StatusNotFound:
		return "", nil
	}
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	text := strings.ToValidUTF8(string(b), "")
	if _, rest, cut := strings.Cut(text, "\n"); cut && len(b) >= maxPart { // the first line is incomplete
		text = rest
	}
	return text, err
}
