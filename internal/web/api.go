package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
)

// Responses of the API. Fields are never removed or renamed.

type projectBody struct {
	Name        string     `json:"name"`
	Repo        string     `json:"repo" doc:"Folder of the repository; empty until the project was first opened."`
	State       string     `json:"state" enum:"starting,broken,paused,working,waiting,draining"`
	Problem     string     `json:"problem,omitempty" doc:"The problem, in one line."`
	Parallel    int        `json:"parallel"`
	Shared      int        `json:"shared_parallel,omitempty" doc:"Maximum number of active issues of all projects; absent: unlimited."`
	Starved     bool       `json:"waits_for_slot,omitempty" doc:"Other projects have all of these slots."`
	PollSeconds float64    `json:"poll_seconds"`
	Running     []runBody  `json:"running"`
	Swept       *time.Time `json:"swept,omitempty" doc:"When the last sweep ended."`
	Next        *time.Time `json:"next,omitempty" doc:"When the next one begins."`
}

type projectsBody struct {
	Projects []projectBody `json:"projects"`
	Problem  string        `json:"problem,omitempty" doc:"Why the latest configuration was refused."`
	Draining bool          `json:"draining"`
}

type issueBody struct {
	Key    string   `json:"key"`
	Title  string   `json:"title"`
	URL    string   `json:"url,omitempty"`
	Labels []string `json:"labels"`
	State  string   `json:"state" enum:"running,ready,waiting,needs-human,needs-info,left-out"`
	Code   string   `json:"code,omitempty" doc:"The kind of reason; new kinds may be added."`
	Reason string   `json:"reason,omitempty"`
	Run    string   `json:"run,omitempty" doc:"The active run, or the run that is the reason; the latest run if the issue is ready or does not qualify."`
}

type issuesBody struct {
	Issues   []issueBody `json:"issues" doc:"Active issues, then ready ones in the order in which ralph works them, then the rest."`
	Problems []string    `json:"problems" doc:"Parts of the backlog that could not be read."`
	At       time.Time   `json:"at,omitzero" doc:"When the backlog was read; absent: not yet."`
}

// usageBody is an agents.Usage.
type usageBody struct {
	Input      int64   `json:"input"`
	Output     int64   `json:"output"`
	CacheRead  int64   `json:"cache_read"`
	CacheWrite int64   `json:"cache_write"`
	CostUSD    float64 `json:"cost_usd,omitzero" doc:"US dollars, as reported by the agent or at known prices; absent: unknown."`
	Estimated  int64   `json:"estimated,omitempty" doc:"Number of tokens that are estimated, or whose cost is; absent: none."`
	Unpriced   int64   `json:"unpriced,omitempty" doc:"Number of tokens of models without a known price, which cost_usd lacks; absent: none."`
}

type runBody struct {
	ID         string             `json:"run"`
	Issue      string             `json:"issue"`
	Title      string             `json:"title"`
	URL        string             `json:"url,omitempty"`
	State      string             `json:"state" doc:"running, died, unfinished, or the outcome."`
	Reason     string             `json:"reason,omitempty"`
	Stage      string             `json:"stage"`
	Machine    string             `json:"machine,omitempty" doc:"The host of the run, if it is another one."`
	Doing      string             `json:"doing,omitempty" doc:"What the agent or ralph is doing."`
	Attempt    int                `json:"attempt"`
	Agent      string             `json:"agent,omitempty"`
	Model      string             `json:"model,omitempty"`
	Sandbox    string             `json:"sandbox,omitempty"`
	Branch     string             `json:"branch,omitempty"`
	Base       string             `json:"base,omitempty"`
	Commits    int                `json:"commits"`
	Published  string             `json:"published,omitempty"`
	RequestURL string             `json:"request_url,omitempty"`
	Iterations int                `json:"iterations"`
	Usage      usageBody          `json:"usage"`
	Warnings   []sandboxes.Notice `json:"warnings"`
	Started    time.Time          `json:"started"`
	Ended      *time.Time         `json:"ended,omitempty"`
	Seconds    float64            `json:"elapsed_seconds"`
}

type runsBody struct {
	Runs []runBody `json:"runs" doc:"The latest first."`
}

type retryBody struct {
	Until  *time.Time `json:"until,omitempty" doc:"When the first of the issue's agents is expected to be available; no sweep works the issue before. Absent: now."`
	Reason string     `json:"reason,omitempty" doc:"Why the agents are unavailable."`
}

// body is a response with a body; huma requires a struct.
type body[T any] struct{ Body T }

type ofProject struct {
	Project string `path:"project" maxLength:"64"`
}

type ofRun struct {
	Project string `path:"project" maxLength:"64"`
	Run     string `path:"run" maxLength:"255"`
}

// api handles requests below /v1.
type api struct {
	Config
	slots chan struct{} // limits the number of streams
}

func newAPI(mux *http.ServeMux, c Config) api {
	config := huma.DefaultConfig("ralph", c.Version)
	config.DocsPath, config.SchemasPath, config.CreateHooks = "", "", nil // huma's page would load scripts from other hosts
	config.OpenAPIPath = "/v1/openapi"
	config.Servers = nil
	h := humago.New(mux, config)
	a := api{Config: c, slots: make(chan struct{}, c.Streams)}
	huma.Get(h, "/v1/projects", a.projects, operationID("list-projects"))
	huma.Get(h, "/v1/projects/{project}", a.project, operationID("get-project"))
	huma.Post(h, "/v1/projects/{project}/pause", a.pause(true), operationID("pause-project"))
	huma.Post(h, "/v1/projects/{project}/resume", a.pause(false), operationID("resume-project"))
	huma.Get(h, "/v1/projects/{project}/issues", a.issues, operationID("list-issues"))
	huma.Post(h, "/v1/projects/{project}/issues/{issue}/stop", a.stop, operationID("stop-issue"))
	huma.Post(h, "/v1/projects/{project}/issues/{issue}/retry", a.retry, operationID("retry-issue"))
	huma.Get(h, "/v1/projects/{project}/runs", a.runs, operationID("list-runs"))
	huma.Get(h, "/v1/projects/{project}/runs/{run}", a.run, operationID("get-run"))
	a.registerEvents(h)
	return a
}

func operationID(id string) func(*huma.Operation) {
	return func(o *huma.Operation) { o.OperationID = id }
}

// failure maps an error to an HTTP error.
func failure(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, service.ErrNoProject), errors.Is(err, tracker.ErrNotFound):
		return huma.Error404NotFound(err.Error())
	case errors.Is(err, service.ErrNotOpen), errors.Is(err, service.ErrAway), errors.Is(err, journal.ErrUnavailable):
		return huma.Error503ServiceUnavailable(service.OneLine(err))
	}
	return huma.Error409Conflict(service.OneLine(err))
}

func (a api) projects(ctx context.Context, _ *struct{}) (*body[projectsBody], error) {
	out := projectsBody{Projects: []projectBody{}, Problem: a.Service.Refused(), Draining: a.Service.Draining()}
	for _, s := range a.Service.Projects() {
		out.Projects = append(out.Projects, a.projectBody(ctx, s))
	}
	return &body[projectsBody]{out}, nil
}

func (a api) project(ctx context.Context, in *ofProject) (*body[projectBody], error) {
	s, err := a.Service.Status(in.Project)
	if err != nil {
		return nil, failure(err)
	}
	return &body[projectBody]{a.projectBody(ctx, s)}, nil
}

func (a api) projectBody(ctx context.Context, s service.Status) projectBody {
	p := projectBody{
		Name: s.Name, Repo: s.Repo, State: string(s.State), Problem: s.Problem, Parallel: s.Parallel,
		Shared: s.Shared, Starved: s.Starved, PollSeconds: s.Poll.Seconds(),
		Running: []runBody{}, Swept: timeOf(s.Swept), Next: timeOf(s.Next),
	}
	for _, r := range s.Elsewhere {
		p.Running = append(p.Running, newRunBody(r))
	}
	if len(s.Running) == 0 {
		return p
	}
	open, err := a.Service.Runs(ctx, s.Name, journal.Query{Open: true, Limit: openLimit})
	for _, r := range s.Running {
		i := slices.IndexFunc(open, func(known journal.Record) bool { return known.ID == r.Run })
		switch {
		case i >= 0:
			p.Running = append(p.Running, newRunBody(open[i]))
		case err != nil:
			b := newRunBody(journal.Record{Run: journal.Run{ID: r.Run, Key: r.Key, Title: r.Title, Started: r.Started}})
			b.State, b.Machine = "running", ""
			p.Running = append(p.Running, b)
		}
	}
	if err != nil {
		p.Problem = cmp.Or(p.Problem, service.OneLine(err))
	}
	return p
}

// openLimit is the number of open runs, of all machines, that one request reads.
const openLimit = 1000

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (a api) pause(paused bool) func(context.Context, *ofProject) (*struct{}, error) {
	return func(_ context.Context, in *ofProject) (*struct{}, error) {
		return nil, failure(a.Service.Pause(in.Project, paused, "the API"))
	}
}

func (a api) issues(ctx context.Context, in *ofProject) (*body[issuesBody], error) {
	board, err := a.Service.Board(ctx, in.Project)
	if err != nil {
		return nil, failure(err)
	}
	status, err := a.Service.Status(in.Project)
	if err != nil {
		return nil, failure(err)
	}
	return &body[issuesBody]{newIssuesBody(board, status)}, nil
}

func newIssuesBody(board service.Board, status service.Status) issuesBody {
	out := issuesBody{Issues: []issueBody{}, Problems: board.Wrong(), At: board.At}
	for _, i := range board.Issues(status.All()) {
		out.Issues = append(out.Issues, issueBody{
			i.Key, i.Title, i.URL, append([]string{}, i.Labels...), string(i.State), i.Code, i.Reason, i.Run,
		})
	}
	return out
}

type stopInput struct {
	Project string `path:"project" maxLength:"64"`
	Issue   string `path:"issue" maxLength:"255"`
	Run     string `query:"run" maxLength:"255" doc:"End only this run; an error if it has ended. Default: the active run."`
}

func (a api) stop(ctx context.Context, in *stopInput) (*struct{}, error) {
	return nil, failure(a.Service.Stop(ctx, in.Project, in.Issue, in.Run))
}

type retryInput struct {
	Project string `path:"project" maxLength:"64"`
	Issue   string `path:"issue" maxLength:"255"`
	Fresh   bool   `query:"fresh" doc:"Start from the base, without the earlier work."`
}

func (a api) retry(ctx context.Context, in *retryInput) (*body[retryBody], error) {
	if err := a.Service.Retry(ctx, in.Project, in.Issue, "a person", in.Fresh); err != nil {
		return nil, failure(err)
	}
	var out retryBody
	parked, _ := a.Service.Waits(ctx, in.Project) // the retry was requested, even if this read fails
	for _, p := range parked {
		out.Reason = strings.TrimSpace(out.Reason + " " + p.Sentence())
	}
	if len(parked) > 0 {
		out.Until = timeOf(parked[0].Until)
	}
	return &body[retryBody]{out}, nil
}

type runsInput struct {
	Project string `path:"project" maxLength:"64"`
	Issue   string `query:"issue" maxLength:"255" doc:"Only runs of this issue."`
	Days    int    `query:"days" minimum:"1" maximum:"3650" default:"30" doc:"Only runs that began in the last days."`
	Limit   int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

func (a api) runs(ctx context.Context, in *runsInput) (*body[runsBody], error) {
	records, err := a.Service.Runs(ctx, in.Project, journal.Query{
		Key:   in.Issue,
		Since: time.Now().AddDate(0, 0, -in.Days),
		Limit: in.Limit,
	})
	if err != nil {
		return nil, failure(err)
	}
	out := runsBody{Runs: []runBody{}}
	for _, r := range slices.Backward(records) {
		out.Runs = append(out.Runs, newRunBody(r))
	}
	return &body[runsBody]{out}, nil
}

func (a api) run(ctx context.Context, in *ofRun) (*body[runBody], error) {
	r, err := a.record(ctx, in.Project, in.Run)
	if err != nil {
		return nil, err
	}
	return &body[runBody]{newRunBody(r)}, nil
}

func (a api) record(ctx context.Context, project, run string) (journal.Record, error) {
	records, err := a.Service.Runs(ctx, project, journal.Query{Run: run, Limit: 1})
	switch {
	case err != nil:
		return journal.Record{}, failure(err)
	case len(records) == 0:
		return journal.Record{}, huma.Error404NotFound("there is no such run")
	}
	return records[0], nil
}

func newRunBody(r journal.Record) runBody {
	b := runBody{
		ID:         r.ID,
		Issue:      r.Key,
		Title:      r.Title,
		URL:        r.URL,
		State:      service.RunState(r),
		Reason:     report.Reason(r.Verdict.Reason),
		Stage:      string(r.Stage),
		Machine:    service.Elsewhere(r),
		Doing:      r.Doing,
		Attempt:    r.Attempt,
		Agent:      r.Agent,
		Model:      r.Model,
		Sandbox:    r.Sandbox,
		Branch:     r.Branch,
		Base:       r.Base,
		Commits:    r.Commits,
		Published:  r.Published,
		RequestURL: r.Request.URL,
		Iterations: len(r.Facts.Iterations),
		Usage:      usageBody(r.Facts.Usage),
		Warnings:   append([]sandboxes.Notice{}, r.Warnings...),
		Started:    r.Started,
		Ended:      timeOf(r.Ended),
		Seconds:    r.DurationUntil(time.Now()).Seconds(),
	}
	if b.Ended != nil {
		b.Seconds = r.DurationUntil(r.Ended).Seconds()
	}
	return b
}
