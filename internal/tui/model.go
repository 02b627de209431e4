package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/ralph-pool/ralph/agents"
)

// Actions are the view's calls into its program. Name and Cost must be quick; Stop and Diff may take long.
type Actions struct {
	Name func(Run) string          // display name of a run's issue
	Cost func(agents.Usage) string // in few characters
	Stop func(context.Context, Run) error
	Diff func(context.Context, Run) (string, error) // diff of the run's commits
}

// model is the state of the view and of the user's input. It knows neither terminal nor clock.
type model struct {
	Actions
	ctx           context.Context //nolint:containedctx // of what the person asks for
	title         string
	leaveQuestion string // question before the view is left; empty: none
	paint         styles

	board          board
	now, began     time.Time
	width, height  int
	chosen         Run
	pane           *pane // open pane; nil: none
	ask            *question
	help           bool
	note           string // one line, shown until the next key or for noteTime
	noted          time.Time
	finished, left bool   // over: show nothing more; left: because the user left
	content        string // current content of the terminal
}

// noteTime is the maximum time for which a note is shown.
const noteTime = 10 * time.Second

// question is a question that waits for y or n.
type question struct {
	text string
	yes  func(model) (model, tea.Cmd)
}

type (
	// frame is the latest state of the runs.
	frame struct {
		board board
		now   time.Time
	}
	// noted is the result of an action.
	noted string
	// diffResult is the diff of a run.
	diffResult struct {
		run      Run
		text     string
		isReason bool // text is the reason why there is no diff
	}
	// quit ends the view.
	quit struct{}
)

// Init implements tea.Model.
func (m model) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var then tea.Cmd
	switch msg := msg.(type) {
	case frame:
		m = m.withFrame(msg)
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		m.note = ""
		m, then = m.press(msg.String())
	case noted:
		m.note, m.noted = plain(string(msg)), m.now
	case diffResult:
		if m.pane != nil && m.pane.diff && m.pane.run == msg.run {
			p := *m.pane
			p.isReason = msg.isReason
			m.pane = p.with(diffLines(msg.text))
		}
	case quit:
		m.finished, then = true, tea.Quit
	default:
		return m, nil
	}
	m.content = strings.Join(m.lines(), "\n")
	return m, then
}

// View implements tea.Model. The cursor stays visible, on an empty line below all others, where a shell would continue.
func (m model) View() tea.View {
	v := tea.NewView(m.content)
	v.DisableBracketedPasteMode = true
	v.Cursor = tea.NewCursor(0, strings.Count(m.content, "\n"))
	return v
}

func (m model) withFrame(f frame) model {
	gone := slices.IndexFunc(m.board.rows, m.isChosen)
	if m.board, m.now = f.board, f.now; m.now.Sub(m.noted) > noteTime {
		m.note = ""
	}
	if m.began.IsZero() {
		m.began = f.now
	}
	at := slices.IndexFunc(m.board.rows, m.isChosen)
	switch {
	case at < 0 && m.pane == nil && len(m.board.rows) > 0: // choose the run now at that place; a pane stays open until the user closes it
		m.chosen = m.board.rows[min(max(gone, 0), len(m.board.rows)-1)].Run
	case at >= 0 && m.pane != nil && !m.pane.diff:
		m.pane = m.pane.with(m.board.rows[at].log)
	}
	return m
}

func (m model) isChosen(r row) bool { return r.Run == m.chosen }

// press handles a key.
func (m model) press(key string) (model, tea.Cmd) {
	if m.ask != nil {
		yes := m.ask.yes
		m.ask = nil
		if key == "y" || key == "Y" {
			return yes(m)
		}
		return m, nil
	}
	if m.pane != nil {
		if p, moved := m.pane.press(key, m.paneRoom()); moved {
			m.pane = p
			return m, nil
		}
	}
	at := slices.IndexFunc(m.board.rows, m.isChosen)
	switch key {
	case "?":
		m.help = !m.help
	case "up", "k":
		m = m.choose(at - 1)
	case "down", "j":
		m = m.choose(at + 1)
	case "enter":
		return m.show(at, false)
	case "d":
		return m.show(at, true)
	case "s":
		return m.stop(at), nil
	case "q", "esc":
		return m.back(key)
	}
	return m, nil
}

func (m model) choose(at int) model {
	if n := len(m.board.rows); n > 0 {
		m.chosen = m.board.rows[min(max(at, 0), n-1)].Run
	}
	return m
}

// show opens the log or the diff of the chosen run, or closes it if it is open.
func (m model) show(at int, diff bool) (model, tea.Cmd) {
	if m.pane != nil && m.pane.diff == diff {
		m.pane = nil
		return m.withFrame(frame{m.board, m.now}), nil
	}
	if at < 0 {
		return m, nil
	}
	r := m.board.rows[at]
	m.pane = &pane{run: r.Run, diff: diff, follow: !diff}
	if !diff {
		m.pane = m.pane.with(r.log)
		return m, nil
	}
	m.pane = m.pane.with([]string{"…"})
	ctx, get := m.ctx, m.Diff
	return m, func() tea.Msg {
		text, err := get(ctx, r.Run)
		switch {
		case err != nil:
			text = err.Error()
		case strings.TrimSpace(text) == "":
			text = "Nothing differs."
		}
		return diffResult{r.Run, text, err != nil}
	}
}

func (m model) stop(at int) model {
	if at < 0 {
		return m
	}
	r := m.board.rows[at].Run
	name := plain(m.Name(r))
	m.ask = &question{"Stop " + name + "? Its work is kept.", func(m model) (model, tea.Cmd) {
		ctx, stop := m.ctx, m.Stop
		return m, func() tea.Msg {
			if err := stop(ctx, r); err != nil {
				return noted(err.Error())
			}
			return noted(name + " is asked to end")
		}
	}}
	return m
}

// back closes what is open, and leaves the view if nothing is.
func (m model) back(key string) (model, tea.Cmd) {
	switch {
	case m.pane != nil:
		m.pane = nil
		return m.withFrame(frame{m.board, m.now}), nil
	case m.help:
		m.help = false
		return m, nil
	case key == "esc":
		return m, nil
	}
	over := func(m model) (model, tea.Cmd) {
		m.finished, m.left = true, true
		return m, tea.Quit
	}
	if m.leaveQuestion == "" {
		return over(m)
	}
	m.ask = &question{m.leaveQuestion, over}
	return m, nil
}
