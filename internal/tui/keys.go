package tui

import (
	"bytes"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
)

// decode turns what one read of the terminal gave into keys, as Bubble Tea does. Bubble Tea reads by itself only in a mode of the
// terminal that would outlive a killed process, and that takes Ctrl-C and Ctrl-Z away from the shell.
func decode(b []byte) (keys []tea.KeyPressMsg) {
	b = bytes.ReplaceAll(b, []byte("\n"), []byte("\r")) // the terminal's usual mode makes the one of the other
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
