package dashboard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
)

// Live tracks what active runs are doing. It is safe for concurrent use.
type Live struct {
	mu   sync.Mutex
	runs map[string]activity // guarded by mu; by project and run id
}

// activity is the current activity of a run.
type activity struct {
	Phase string // for display
	Last  string // last action of the agent or ralph; cleaned untrusted text
	Usage agents.Usage
}

// NewLive returns an empty Live.
func NewLive() *Live { return &Live{runs: map[string]activity{}} }

// Observe updates the activity of a run; see service.Config.
func (l *Live) Observe(project string, e journal.Event) {
	if e.Run == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	id := project + "/" + e.Run
	if e.Kind == journal.EventEnded || e.Kind == journal.EventDeferred {
		delete(l.runs, id)
		return
	}
	d, on := l.runs[id]
	text, says := report.Action(e)
	switch e.Kind {
	case journal.EventStage:
		d.Phase = phase(e.Stage)
	case journal.EventStarted:
	case journal.EventIteration:
		d.Phase = fmt.Sprintf("iteration %d", e.Iteration)
	case journal.EventUsage, journal.EventReview:
		if e.Usage != nil {
			d.Usage = d.Usage.Add(*e.Usage)
		}
	default:
		if !on && !says {
			return
		}
	}
	if says {
		d.Last = line(text)
	}
	l.runs[id] = d
}

// phase returns a stage in words.
func phase(s journal.Stage) string {
	switch s {
	case journal.StageBaseline:
		return "gate on the base"
	case journal.StageWork:
		return "the agent works"
	case journal.StageVerify:
		return "verifying"
	case journal.StagePublish:
		return "publishing"
	case journal.StageReport, journal.StageLabel, journal.StageRelease:
		return "reporting"
	}
	return "preparing"
}

func (l *Live) activityOf(project, run string) activity {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[project+"/"+run]
}

// activeRun is an active run as the pages show it.
type activeRun struct {
	Project, Key, Title, Run string
	Started                  time.Time
	activity
}

func (p *Pages) running(list ...service.Status) (out []activeRun) {
	for _, s := range list {
		for _, r := range s.Running {
			out = append(out, activeRun{s.Name, r.Key, line(r.Title), r.Run, r.Started, p.Config.Live.activityOf(s.Name, r.Run)})
		}
		for _, r := range s.Elsewhere {
			out = append(out, activeRun{
				s.Name, r.Key, line(r.Title), r.ID, r.Started,
				activity{phase(r.Stage) + ", on " + line(r.Host), line(r.Doing), r.Facts.Usage},
			})
		}
	}
	return out
}

// change is a message in a page's stream: the activity of its runs, and a digest of everything else that it shows. If the
// digest differs from the page's own, the page reloads.
type change struct {
	Digest string        `json:"digest"`
	Runs   []runActivity `json:"runs"`
}

type runActivity struct {
	Run   string `json:"run"`
	Phase string `json:"phase"`
	Last  string `json:"last"`
	Cost  string `json:"cost"`
}

// Changes returns the current message for the page of a project, or of all projects if the name is empty.
func (p *Pages) Changes(ctx context.Context, project string) ([]byte, error) {
	list := p.Service.Projects()
	if project != "" {
		s, err := p.Service.Status(project)
		if err != nil {
			return nil, err
		}
		list = []service.Status{s}
	}
	c := change{Digest: p.digest(list...), Runs: []runActivity{}}
	if project != "" {
		board, isOld, _ := p.latestBoard(ctx, list[0], 0)
		c.Digest += board.digest + staleMark(isOld)
	}
	for _, n := range p.running(list...) {
		c.Runs = append(c.Runs, runActivity{n.Run, n.Phase, n.Last, money(n.Usage)})
	}
	return json.Marshal(c)
}

// digest changes when a project's state or the set of its runs changes.
func (p *Pages) digest(list ...service.Status) string {
	sum := sha256.New()
	_, _ = fmt.Fprintln(sum, p.Service.Refused(), p.Service.Draining())
	for _, s := range list {
		_, _ = fmt.Fprintf(sum, "%q %q %q %t %v\n", s.Name, s.Problem, s.State, s.Starved, ids(s))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

func ids(s service.Status) (out []string) {
	for _, r := range s.All() {
		out = append(out, r.Run)
	}
	slices.Sort(out) // the order differs between machines
	return out
}

// boardState is a board and its input.
type boardState struct {
	service.Board
	Parked     []journal.Parked // agents that issues with a pending retry wait for
	activeRuns string           // the active runs at that time
	digest     string           // changes with the state of an issue or of a parked agent
}

func newBoardState(b service.Board, parked []journal.Parked, of string) boardState {
	sum := sha256.New()
	_, _ = fmt.Fprintln(sum, b.Wrong())
	for _, p := range parked {
		_, _ = fmt.Fprintln(sum, p.Sentence())
	}
	for _, i := range b.Issues(nil) {
		_, _ = fmt.Fprintln(sum, i.Key, line(i.Title), i.State, line(i.Reason))
	}
	return boardState{b, parked, of, hex.EncodeToString(sum.Sum(nil)[:8])}
}

// boardAge is how long a board is reused: trackers on the network have rate limits.
const boardAge = 30 * time.Second

// latestBoard returns the latest board of a project; its time is zero before the first one. isOld means that other runs are active
// now, or that the board is older than twice boardAge: an open page causes a read every boardAge. A board that cannot be
// read now does not count as old, because its digest changes once it can be read.
func (p *Pages) latestBoard(ctx context.Context, s service.Status, patience time.Duration) (board boardState, isOld bool, err error) {
	of := fmt.Sprint(ids(s))
	want := cacheRequest{project: s.Name, inputKey: of, age: boardAge, patience: patience}
	board, current, err := p.boards.get(ctx, want, func(ctx context.Context, _ boardState) (boardState, error) {
		b, err := p.Service.Board(ctx, s.Name)
		parked, _ := p.Service.Waits(ctx, s.Name) // the board is still useful
		return newBoardState(b, parked, of), err
	})
	outdated := board.activeRuns != of || time.Since(board.At) > 2*boardAge
	return board, !current && board.Problem == "" && !board.At.IsZero() && outdated, err
}

// staleMark marks the digest of a page that shows an old board, so that the page reloads once a new one has been read.
func staleMark(is bool) string {
	if is {
		return "-old"
	}
	return ""
}
