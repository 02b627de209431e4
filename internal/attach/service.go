package attach

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
)

const (
	answerTime = 10 * time.Second
	answerMax  = 16 << 20 // bytes of an answer, and of one event

	failuresMax = 5 // of a stream, one after the other
)

// Service are the runs of a service, through its API.
type Service struct {
	base   string
	token  string
	client *http.Client
}

// NewService makes a client of the API at an address: http://HOST:PORT, HOST:PORT or unix:PATH. The token may be empty.
func NewService(address, token string) (*Service, error) {
	s := &Service{base: address, token: token}
	transport := &http.Transport{ResponseHeaderTimeout: answerTime, MaxConnsPerHost: followMax + 8}
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		s.base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}
	} else if !strings.Contains(address, "://") {
		s.base = "http://" + address
	}
	s.base = strings.TrimSuffix(s.base, "/")
	if u, err := url.Parse(s.base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is no address of a service", address)
	}
	s.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the service answers with a redirect") // it would take the token along
	}}
	return s, nil
}

// Close ends idle connections.
func (s *Service) Close() { s.client.CloseIdleConnections() }

// ask sends a request and returns the body of the answer, which the caller closes.
func (s *Service) ask(ctx context.Context, method, path, last string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.base+path, nil)
	if err != nil {
		return nil, err
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		defer answer.Body.Close()
		var problem struct{ Detail string }
		_ = json.NewDecoder(io.LimitReader(answer.Body, answerMax)).Decode(&problem)
		return nil, errors.New(strings.TrimSuffix(answer.Status+": "+problem.Detail, ": "))
	}
	return answer.Body, nil
}

// Runs is of Source.
func (s *Service) Runs(ctx context.Context) (runs []Run, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	body, err := s.ask(ctx, http.MethodGet, "/v1/projects", "")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var answer struct {
		Projects []struct {
			Name    string
			Repo    string
			Running []struct {
				Run, Issue, Title string
				Started           time.Time
				Usage             agents.Usage
			}
		}
	}
	if err := json.NewDecoder(io.LimitReader(body, answerMax)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("answer of the service: %w", err)
	}
	for _, p := range answer.Projects {
		for _, r := range p.Running {
			runs = append(runs, Run{Project: p.Name, ID: r.Run, Key: r.Issue, Title: r.Title, Started: r.Started, Used: r.Usage, Repo: p.Repo})
		}
	}
	return runs, nil
}

// Stop is of Source.
func (s *Service) Stop(ctx context.Context, r Run) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	body, err := s.ask(ctx, http.MethodPost, "/v1/projects/"+url.PathEscape(r.Project)+"/issues/"+url.PathEscape(r.Key)+"/stop", "")
	if err != nil {
		return fmt.Errorf("stop %s: %w", r.Key, err)
	}
	return body.Close()
}

// Follow is of Source. A stream that breaks is taken up again where it was.
func (s *Service) Follow(ctx context.Context, r Run, each func(journal.Event)) {
	last := ""
	pause := time.NewTimer(0)
	defer pause.Stop()
	for failures := 0; failures < failuresMax; failures++ {
		select {
		case <-pause.C:
			pause.Reset(look)
		case <-ctx.Done():
			return
		}
		body, err := s.ask(ctx, http.MethodGet, "/v1/projects/"+url.PathEscape(r.Project)+"/runs/"+url.PathEscape(r.ID)+"/events", last)
		if err != nil {
			continue
		}
		stop := context.AfterFunc(ctx, func() { _ = body.Close() })
		over, got := stream(body, &last, each)
		stop()
		_ = body.Close()
		if over {
			return
		}
		if got {
			failures = 0
		}
	}
}

// stream reads server-sent events. over says that the run has ended, got that there was anything.
func stream(body io.Reader, last *string, each func(journal.Event)) (over, got bool) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, answerMax)
	var kind, data, id string
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			data = value
		case "":
			if lines.Text() != "" || data == "" { // a comment, or nothing
				continue
			}
			if kind == "end" {
				return true, true
			}
			var e journal.Event
			if json.Unmarshal([]byte(data), &e) == nil {
				each(e)
			}
			*last, got = id, true
			kind, data = "", ""
		}
	}
	return false, got
}
