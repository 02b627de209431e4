package service

import (
	"context"
	"time"

	"github.com/ralph-pool/ralph/pool"
)

// Board is the backlog of a project as a sweep would see it.
type Board struct {
	pool.Plan
	At      time.Time // when it was looked at
	Problem string    // why it could not be looked at since; empty: it could
}

// boardAge is how long a look at the backlog serves: a tracker on the network has a limit of requests.
const boardAge = 10 * time.Second

// boardTime bounds one look.
const boardTime = 20 * time.Second

// Board looks at the backlog of a project, at most every ten seconds unless a run has begun or ended. Callers wait for the one who looks.
func (s *Service) Board(ctx context.Context, name string) (Board, error) {
	p, parts, err := s.opened(name)
	if err != nil {
		return Board{}, err
	}
	p.looking.Lock()
	defer p.looking.Unlock()
	if !p.moved.Swap(false) && time.Since(p.board.At) < boardAge {
		return p.board, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), boardTime)
	defer cancel()
	plan, err := parts.Pool.Plan(ctx)
	if err != nil {
		p.board.Problem = OneLine(err)
	} else {
		p.board = Board{Plan: plan}
	}
	p.board.At = time.Now()
	return p.board, nil
}
