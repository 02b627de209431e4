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

// unitSocket is the socket of the unit in deploy/systemd.
const unitSocket = "/run/ralph/api.sock"

// usualListen says where serviceHere looks.
const usualListen = "unix:" + unitSocket + " where that is, else " + defaultListen

// serviceHere is where the service of this machine listens, unless somebody says another place.
func serviceHere(a *compose.App) string {
	if _, err := os.Stat(unitSocket); err == nil && a.Host.Service == "" {
		return "unix:" + unitSocket
	}
	return cmp.Or(a.Host.Service, defaultListen)
}

// address is where clients find the API.
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

// clientOf is a client of the service at an address, which flag names if it is not empty, with the token that it asks for.
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

// refused says what to do about an answer of a service. Other errors stay as they are.
func refused(err error) error {
	if errors.Is(err, attach.ErrOther) {
		return &exit.Error{Status: exit.Usage, Err: err, Hint: "is it a machine of a fleet? name one with the role web"}
	}
	if errors.Is(err, attach.ErrNoService) {
		return &exit.Error{Status: exit.Failed, Err: err, Hint: "begin one with: ralph serve"}
	}
	answer, is := errors.AsType[*attach.RefusedError](err)
	if !is {
		return err
	}
	answer.Detail = screen.CleanLine(answer.Detail)
	if answer.Code == http.StatusUnauthorized {
		return &exit.Error{Status: exit.Usage, Err: err, Hint: "give --listen-token-file FILE or " + config.ListenTokenVariable}
	}
	return err
}
