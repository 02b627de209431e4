package gitlab

import (
	"context"
	"errors"
	"fmt"
	"slices"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// mergeLater enables auto-merge or adds the request to the project's merge train. It refuses a request without a pipeline, which
// GitLab would merge at once.
func (t *Tracker) mergeLater(ctx context.Context, iid int, commit string) (refused string, err error) {
	m, p, err := t.readWithPipeline(ctx, iid)
	// GitLab creates the pipeline some time after the push.
	for n := 1; err == nil && m.SHA == commit && p == nil && n < retry.Attempts; n++ {
		if err := t.Stack.Clock().Sleep(ctx, retry.Pause(n+1)); err != nil {
			return "", err
		}
		m, p, err = t.readWithPipeline(ctx, iid)
	}
	if err != nil {
		return "", err
	}
	if m.SHA != commit {
		return "the request's head is not the commit that was checked", nil
	}
	why := ""
	switch {
	case m.Draft:
		why = "it is a draft"
	case m.DetailedMergeStatus == "requested_changes":
		why = "a review requests changes"
	case !m.BlockingDiscussionsResolved:
		why = "a discussion is not resolved"
	case p == nil:
		why = "GitLab has no pipeline of its commit to wait for: add one that runs for merge requests"
	case !slices.Contains([]string{"created", "waiting_for_resource", "preparing", "pending", "running", "scheduled", "success"}, p.Status):
		why = "its pipeline is " + tracker.Line(p.Status, 40)
	case m.MergeWhenPipelineSucceeds:
		return "", nil
	}
	if why != "" {
		return why, t.cancelMerge(ctx, m)
	}
	if err = t.acceptMerge(ctx, m, commit); err == nil {
		return "", nil
	}
	if _, away := errors.AsType[*tracker.UnavailableError](err); away {
		return "", err
	}
	return fmt.Sprintf("%s; ralph's account has to be allowed to merge into %s, in the project's settings of protected branches",
		tracker.Line(err.Error(), 300), m.TargetBranch), nil
}

// readWithPipeline reads a merge request and the pipeline of its head commit.
func (t *Tracker) readWithPipeline(ctx context.Context, iid int) (*gl.MergeRequest, *gl.Pipeline, error) {
	m, err := t.merge(ctx, iid)
	if err != nil {
		return nil, nil, err
	}
	p, err := t.pipelineOf(ctx, m)
	return m, p, err
}

// pipelineOf returns the pipeline of the request's head commit, or nil if there is none yet. Pipelines of merged results and of
// merge trains run on a merge commit made by GitLab: they belong to the head if they are newer than the last push.
func (t *Tracker) pipelineOf(ctx context.Context, m *gl.MergeRequest) (*gl.Pipeline, error) {
	if m.HeadPipeline == nil {
		return nil, nil
	}
	p, refs := m.HeadPipeline, fmt.Sprintf("refs/merge-requests/%d/", m.IID)
	if p.SHA == m.SHA {
		return p, nil
	}
	if p.Ref != refs+"merge" && p.Ref != refs+"train" {
		return nil, nil
	}
	pushed, err := t.pushTime(ctx, m)
	if err != nil || pushed.IsZero() || timeOrZero(p.CreatedAt).Before(pushed) {
		return nil, err
	}
	return p, nil
}

// acceptMerge asks GitLab to merge the request once its pipeline has passed.
func (t *Tracker) acceptMerge(ctx context.Context, m *gl.MergeRequest, commit string) error {
	project, err := t.readProject(ctx)
	if err != nil {
		return err
	}
	if project.MergeTrainsEnabled {
		listed := transport.ExpectList(ctx, func(c *gl.MergeTrain) bool { return c.ID > 0 })
		opts := gl.AddMergeRequestToMergeTrainOptions{WhenPipelineSucceeds: gl.Ptr(true), SHA: &commit}
		_, resp, err := t.api.MergeTrains.AddMergeRequestToMergeTrain(t.project.Path, m.IID, &opts, gl.WithContext(listed))
		return explain(ctx, resp, err)
	}
	_, err = getOne(ctx, completeMerge, func(o ...gl.RequestOptionFunc) (*gl.MergeRequest, *gl.Response, error) {
		opts := gl.AcceptMergeRequestOptions{MergeWhenPipelineSucceeds: gl.Ptr(true), SHA: &commit}
		return t.api.MergeRequests.AcceptMergeRequest(t.project.Path, m.IID, &opts, o...)
	})
	return err
}

// keepOpen undoes mergeLater.
func (t *Tracker) keepOpen(ctx context.Context, iid int) error {
	m, err := t.merge(ctx, iid)
	if err != nil {
		return err
	}
	return t.cancelMerge(ctx, m)
}

// cancelMerge undoes acceptMerge. GitLab also removes the request from a merge train.
func (t *Tracker) cancelMerge(ctx context.Context, m *gl.MergeRequest) error {
	if !m.MergeWhenPipelineSucceeds {
		return nil
	}
	_, err := getOne(ctx, completeMerge, func(o ...gl.RequestOptionFunc) (*gl.MergeRequest, *gl.Response, error) {
		return t.api.MergeRequests.CancelMergeWhenPipelineSucceeds(t.project.Path, m.IID, o...)
	})
	return err
}
