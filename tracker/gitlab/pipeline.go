package gitlab

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/ralph-pool/ralph/tracker/forge"
)

// maxLogs is how many failed jobs' logs are read.
const maxLogs = 5

// failures tells which required jobs of a pipeline failed, with the end of their logs. A job that may fail is none.
func (t *Tracker) failures(ctx context.Context, p pipeline) (string, error) {
	jobs, err := pages[job](ctx, t, t.project("/pipelines/%d/jobs", p.ID), url.Values{"scope[]": {"failed"}})
	if err != nil && forge.Status(err) != http.StatusForbidden && forge.Status(err) != http.StatusNotFound {
		return "", err
	}
	var said []string
	for _, j := range jobs {
		if j.AllowFailure || j.Status != "failed" {
			continue
		}
		text := fmt.Sprintf("Job %s of stage %s failed (%s).", j.Name, j.Stage, j.Reason)
		if len(said) < maxLogs {
			log, err := t.log(ctx, j.ID)
			if err != nil {
				return "", err
			}
			if log != "" {
				text += " The end of its log:\n" + log
			}
		}
		said = append(said, text)
	}
	if len(said) == 0 {
		said = append(said, fmt.Sprintf("Pipeline %d failed: %s", p.ID, p.WebURL))
	}
	return strings.Join(said, "\n\n"), nil
}

// log is the end of a job's log; empty where it was erased or may not be read.
func (t *Tracker) log(ctx context.Context, id int) (string, error) {
	var b bytes.Buffer
	err := t.get(forge.LastBytes(ctx, maxPart), t.project("/jobs/%d/trace", id), &b)
	switch forge.Status(err) {
	case http.StatusForbidden, http.StatusNotFound:
		return "", nil
	}
	text := strings.ToValidUTF8(b.String(), "")
	if _, rest, cut := strings.Cut(text, "\n"); cut && b.Len() >= maxPart { // the first line is not whole
		text = rest
	}
	return text, err
}
