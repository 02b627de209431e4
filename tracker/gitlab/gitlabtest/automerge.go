package gitlabtest

import (
	"net/http"
	"slices"
)

// acceptMerge merges at once, unless the caller asks to wait for a pipeline that has not ended.
func (s *Server) acceptMerge(c *call, p *Project, m *Merge) answer {
	if refused, bad := p.mergeRefusal(c, m); bad {
		return refused
	}
	ended := []string{"success", "failed", "canceled", "skipped", "manual"}
	later, _ := c.body["merge_when_pipeline_succeeds"].(bool)
	if later && m.pipeline != nil && !slices.Contains(ended, m.pipeline.status) {
		m.AutoMerge = true
	} else {
		m.State = "merged"
	}
	return ok(s.mergeObject(p, m, true))
}

func (p *Project) mergeRefusal(c *call, m *Merge) (refused answer, bad bool) {
	p.refresh(m)
	sha, _ := c.body["sha"].(string)
	switch {
	case p.level(c.user.ID) < Developer || p.NoMerge:
		return refusal(http.StatusUnauthorized, "401 Unauthorized"), true
	case m.State != "opened":
		return refusal(http.StatusMethodNotAllowed, "405 Method Not Allowed"), true
	case sha != "" && sha != m.SHA:
		return refusal(http.StatusConflict, "SHA does not match HEAD of source branch: %s", m.SHA), true
	case m.Conflicts:
		return refusal(http.StatusUnprocessableEntity, "Branch cannot be merged"), true
	}
	return answer{}, false
}

// joinTrain adds a merge request to the project's merge train.
func (s *Server) joinTrain(c *call, p *Project, m *Merge) answer {
	if m == nil {
		return notFound("Merge Request")
	}
	if refused, bad := p.mergeRefusal(c, m); bad {
		return refused
	}
	m.AutoMerge, m.Train = true, true
	return created([]object{{"id": s.id(), "status": "idle", "target_branch": m.Target, "created_at": stamp(s.now())}})
}

// keepMerge cancels auto-merge.
func (s *Server) keepMerge(c *call, p *Project, m *Merge) answer {
	switch {
	case p.level(c.user.ID) < Developer:
		return refusal(http.StatusUnauthorized, "401 Unauthorized")
	case !m.AutoMerge:
		return refusal(http.StatusNotAcceptable, "406 Not Acceptable")
	}
	m.AutoMerge, m.Train = false, false
	return created(s.mergeObject(p, m, true))
}
