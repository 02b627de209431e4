package service

// Moved makes the next call of Board read the backlog.
func (s *Service) Moved(name string) error {
	p, _, err := s.opened(name)
	if err == nil {
		p.boardOutdated.Store(true)
	}
	return err
}
