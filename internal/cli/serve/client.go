package serve

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/ralph-pool/ralph/internal/attach"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
)

// unitSocket is the socket of the systemd unit in deploy/systemd.
const unitSocket = "/run/ralph/api.sock"

// usualListen describes serviceHere in the help.
const usualListen = "unix:" + unitSocket + " where that is, else " + defaultListen

// serviceHere returns the default address of this machine's service.
func serviceHere(a *compose.App) string {
	if _, err := os.Stat(unitSocket); err == nil && a.Host.Service == "" {
		return "unix:" + unitSocket
	}
	return cmp.Or(a.Host.Service, defaultListen)
}

// address returns the address of the API, for people.
func (s *serving) address(l net.Listener) string {
	if strings.HasPrefix(s.listen, "unix:") {
		return s.listen
	}
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://localhost:%d/, and all addresses of this machine", tcp.Port)
	}
	return "http://" + l.Addr().String() + "/"
}

// clientOf returns a client of the service at an address, with its token. flag names the address in errors, unless it is empty.
func clientOf(a *compose.App, flag, address, tokenFile string) (*attach.Service, error) {
	token, err := listenToken(a, tokenFile)
	if err != nil {
		return nil, err
	}
	if socket, is := strings.CutPrefix(address, "unix:"); is {
		address = "unix:" + a.Expand(a.Host.Dir, socket)
	}
	s, err := attach.NewService(address, token)
	if err != nil {
		if flag != "" {
			err = fmt.Errorf("%s: %w", flag, err)
		}
		return nil, exit.Usagef("%w; give HOST:PORT, http://HOST:PORT or unix:PATH", err)
	}
	return s, nil
}

// refused adds a hint to an error of a service, if there is one.
func refused(err error) error {
	answer, is := errors.AsType[*attach.RefusedError](err)
	if is {
		answer.Detail = screen.CleanLine(answer.Detail)
	}
	switch {
	case errors.Is(err, attach.ErrOther):
		return &exit.Error{Status: exit.Usage, Err: err, Hint: "is it a machine of a fleet? name one with the role web"}
	case errors.Is(err, attach.ErrNoService):
		return &exit.Error{Status: exit.Failed, Err: err, Hint: "start one with: ralph serve"}
	case is && answer.Code == http.StatusUnauthorized:
		return &exit.Error{Status: exit.Usage, Err: err, Hint: "give --listen-token-file FILE or " + config.ListenTokenVariable}
	}
	return err
}
