package gitlabtest

import (
	"fmt"
	"slices"
	"strings"
)

// Job is one job of a pipeline.
type Job struct {
	Name         string
	Stage        string
	Status       string // "success", "failed", "running", …
	AllowFailure bool
	Trace        string

	id       int
	pipeline int
}

// Run gives the head commit of a merge request a pipeline with this status.
func (p *Project) Run(iid int, status string, jobs ...Job) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	m := p.merge(iid)
	p.refresh(m)
	p.addPipeline(m, pipeline{status: status, sha: m.SHA, ref: m.Source, source: "push"}, jobs)
}

// RunMerged gives a merge request a pipeline on a commit made by GitLab: of a "merge" result or of a merge "train".
func (p *Project) RunMerged(iid int, of, status string, jobs ...Job) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	m := p.merge(iid)
	p.refresh(m)
	ref := fmt.Sprintf("refs/merge-requests/%d/%s", iid, of)
	p.addPipeline(m, pipeline{status: status, sha: strings.Repeat("f", 40), ref: ref, source: "merge_request_event"}, jobs)
}

func (p *Project) addPipeline(m *Merge, l pipeline, jobs []Job) {
	l.id, l.at = p.s.id(), p.s.now()
	m.pipeline = &l
	for _, j := range jobs {
		j.id, j.pipeline = p.s.id(), m.pipeline.id
		p.jobs = append(p.jobs, &j)
	}
}

func (s *Server) listJobs(c *call, p *Project, id int) answer {
	var found []*Job
	for _, j := range p.jobs {
		if scope := c.query["scope[]"]; j.pipeline == id && (len(scope) == 0 || slices.Contains(scope, j.Status)) {
			found = append(found, j)
		}
	}
	return paged(c, found, func(j *Job) object {
		return object{
			"id": j.id, "name": j.Name, "stage": j.Stage, "status": j.Status, "allow_failure": j.AllowFailure, "tag": false,
			"coverage": nil, "failure_reason": "script_failure", "pipeline": object{"id": id, "project_id": p.id, "status": "failed"},
			"web_url": fmt.Sprintf("%s/%s/-/jobs/%d", s.URL, p.path, j.id),
		}
	})
}

func (p *Project) trace(id int) answer {
	for _, j := range p.jobs {
		if j.id == id {
			return answer{status: 200, header: map[string]string{"Content-Type": "text/plain"}, body: []byte(j.Trace)}
		}
	}
	return notFound("Job")
}
