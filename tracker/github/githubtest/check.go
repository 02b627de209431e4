package githubtest

import (
	"net/http"
	"strconv"
)

func (q *request) commit(sha, what string) reply {
	runs, statuses := []any{}, []any{}
	for _, c := range q.checks[sha] {
		if c.Status != "" {
			runs = append(runs, q.showRun(sha, c))
			continue
		}
		one := q.desc.object("combined-commit-status")["statuses"].([]any)[0].(map[string]any)
		one["id"], one["context"], one["state"], one["description"] = c.ID, c.Name, c.Conclusion, c.Text
		one["updated_at"] = stamp(c.At)
		statuses = append(statuses, one)
	}
	if what == "check-runs" {
		return ok(map[string]any{"total_count": len(runs), "check_runs": runs})
	}
	out := q.desc.object("combined-commit-status")
	out["sha"], out["statuses"], out["total_count"] = sha, statuses, len(statuses)
	return ok(out)
}

func (s *Server) showRun(sha string, c *Check) map[string]any {
	out := s.desc.object("check-run-paginated")["check_runs"].([]any)[0].(map[string]any)
	out["id"], out["name"], out["head_sha"], out["status"] = c.ID, c.Name, sha, c.Status
	out["conclusion"], out["completed_at"] = nil, nil
	if c.Status == "completed" {
		out["conclusion"], out["completed_at"] = c.Conclusion, stamp(c.At)
	}
	output := out["output"].(map[string]any)
	output["title"], output["summary"], output["text"] = c.Name, c.Text, nil
	app := out["app"].(map[string]any)
	app["slug"] = "some-ci"
	if c.Actions {
		app["slug"] = "github-actions"
	}
	return out
}

func (q *request) protection(branch string) reply {
	out := q.desc.object("branch-get")
	out["name"] = branch
	return ok(out)
}

// ruleset returns the required checks in the form of a ruleset.
func (q *request) ruleset() reply {
	out := []any{}
	if len(q.rules) > 0 {
		checks := []any{}
		for _, name := range q.rules {
			checks = append(checks, map[string]any{"context": name})
		}
		out = append(out, map[string]any{
			"type": "required_status_checks", "ruleset_source_type": "Repository", "ruleset_source": Owner + "/" + Repo, "ruleset_id": 1,
			"parameters": map[string]any{"required_status_checks": checks, "strict_required_status_checks_policy": false},
		})
	}
	return ok(out)
}

// jobLog returns the log of a job.
func (q *request) jobLog(id string) reply {
	n, _ := strconv.ParseInt(id, 10, 64)
	log, ok := q.logs[n]
	if !ok {
		return refuse(http.StatusNotFound, "Not Found")
	}
	return reply{status: http.StatusOK, text: log}
}
