package dashboard

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Limits of pages.
const (
	columnLimit = 30                    // issues in a column of the board
	pageLimit   = 50                    // rows on a page of a list
	lastRuns    = 10                    // runs below the board
	pageMax     = 10_000                // maximum page number
	patience    = 30 * time.Millisecond // maximum wait for updated sums
	lookTime    = 2 * time.Second       // maximum wait for an updated backlog: a forge needs several requests
)

// overviewModel is the data of the first page.
type overviewModel struct {
	Projects []service.Status
	Running  []activeRun
	Refused  string
	Draining bool
}

func (p *Pages) overview(w http.ResponseWriter, _ *http.Request) error {
	list := p.Service.Projects()
	p.render(w, http.StatusOK, "overview.html", view{
		Title: "Projects", Live: "/live", Digest: p.digest(list...),
		Model: overviewModel{Projects: list, Running: p.running(list...), Refused: p.Service.Refused(), Draining: p.Service.Draining()},
	})
	return nil
}

// boardModel is the data of a project's board.
type boardModel struct {
	Status  service.Status
	Board   boardState
	Old     bool   // the board is outdated and being read
	Problem string // error that prevents the board
	Running []activeRun
	Columns []column
	Runs    []journal.Record
	Only    string // the only state shown; empty: all
	Page    pager
}

// column has the issues of one state.
type column struct {
	State  service.IssueState
	Name   string
	Hint   string
	Issues []service.Issue
	Total  int
}

func columns() []column {
	return []column{
		{State: service.IssueReady, Name: "Ready", Hint: "in the order in which they are worked"},
		{State: service.IssueWaiting, Name: "Waiting", Hint: "continue by themselves"},
		{State: service.IssueNeedsHuman, Name: "Needs you", Hint: "wait for a person"},
		{State: service.IssueLeftOut, Name: "Left out", Hint: "do not qualify for ralph"},
	}
}

// pager is the position of a page in a list.
type pager struct {
	Number  int // from 1
	Earlier int // number of the page before; 0: none
	Later   int // number of the page after; 0: none
}

func pageOf(r *http.Request) int {
	n, err := strconv.Atoi(r.FormValue("page"))
	if err != nil {
		return 1
	}
	return min(max(1, n), pageMax)
}

func (p *Pages) board(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("project")
	status, err := p.Service.Status(name)
	if err != nil {
		return err
	}
	m := boardModel{
		Status:  status,
		Running: p.running(status),
		Columns: columns(),
		Only:    r.FormValue("state"),
		Page:    pager{Number: pageOf(r)},
	}
	v := view{Title: name, Project: name, Tab: "board", Live: projectPath(name) + "/live"}
	if m.Runs, err = p.Service.Runs(r.Context(), name, journal.Query{Limit: lastRuns}); err == nil {
		m.Board, m.Old, err = p.latestBoard(r.Context(), status, lookTime)
	}
	if err != nil {
		m.Problem = service.OneLine(err)
	}
	slices.Reverse(m.Runs)
	_, _ = p.sums(r.Context(), name, 0) // in the background, for the charts
	v.Digest = p.digest(status) + m.Board.digest + staleMark(m.Old)
	if m.Problem == "" && (m.Old || m.Board.At.IsZero() && m.Board.Problem == "") {
		v.Refresh = 3
	}
	m.fill()
	p.render(w, http.StatusOK, "board.html", v.with(m))
	return nil
}

func (v view) with(model any) view {
	v.Model = model
	return v
}

// fill sorts the issues into columns.
func (m *boardModel) fill() {
	for _, i := range m.Board.Issues(m.Status.All()) {
		place := i.State
		if place == service.IssueNeedsInfo {
			place = service.IssueNeedsHuman
		}
		if r := m.ended(i.Key); r != nil {
			place, i.Run, i.Reason = service.IssueWaiting, r.ID, "its run has ended ("+label(state(*r))+"); the backlog is being read again"
		}
		n := slices.IndexFunc(m.Columns, func(c column) bool { return c.State == place })
		if n < 0 {
			continue // running: listed above the columns
		}
		c := &m.Columns[n]
		c.Total++
		first, limit := 0, columnLimit
		if m.Only != "" {
			first, limit = (m.Page.Number-1)*pageLimit, pageLimit
		}
		if c.Total > first && len(c.Issues) < limit {
			c.Issues = append(c.Issues, i)
		}
	}
	if m.Only == "" {
		return
	}
	m.Columns = slices.DeleteFunc(m.Columns, func(c column) bool { return string(c.State) != m.Only })
	for _, c := range m.Columns {
		m.Page = paged(m.Page.Number, c.Total > m.Page.Number*pageLimit)
	}
}

// ended returns the run of the issue that has ended since the backlog was read, or nil. With such a run the backlog is outdated.
func (m *boardModel) ended(key string) *journal.Record {
	for n := range m.Runs {
		if r := &m.Runs[n]; r.Key == key && r.Ended.After(m.Board.At) {
			return r
		}
	}
	return nil
}

func paged(number int, more bool) pager {
	g := pager{Number: number, Earlier: number - 1}
	if more {
		g.Later = number + 1
	}
	return g
}

// runsModel is the data of a page of a project's runs.
type runsModel struct {
	Runs  []journal.Record
	Issue string
	Page  pager
}

func (p *Pages) runs(w http.ResponseWriter, r *http.Request) error {
	name, issue, page := r.PathValue("project"), r.FormValue("issue"), pageOf(r)
	list, err := p.Service.Runs(r.Context(), name, journal.Query{Key: issue, Limit: pageLimit + 1, Skip: (page - 1) * pageLimit})
	if err != nil {
		return err
	}
	slices.Reverse(list)
	m := runsModel{Runs: list[:min(len(list), pageLimit)], Issue: issue, Page: paged(page, len(list) > pageLimit)}
	p.render(w, http.StatusOK, "runs.html", view{Title: "Runs of " + name, Project: name, Tab: "runs", Model: m})
	return nil
}
