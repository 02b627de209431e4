package tui

import (
	"bytes"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
)

// decode turns the bytes of one read from the terminal into keys, as Bubble Tea does. Bubble Tea's own reader needs raw
// mode, which would outlive a killed process and would take Ctrl-C and Ctrl-Z away from the shell.
func decode(b []byte) (keys []tea.KeyPressMsg) {
	b = bytes.ReplaceAll(b, []byte("\n"), []byte("\r")) // the terminal's usual mode turns \r into \n
	for len(b) > 0 {
		var d uv.EventDecoder
		n, event := d.Decode(b)
		if key, ok := event.(uv.KeyPressEvent); ok {
			keys = append(keys, tea.KeyPressMsg(key))
		}
		b = b[max(n, 1):]
	}
	return keys
}
