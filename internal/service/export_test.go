package service

// Moved has the next call of Board look at a project's backlog.
func (s *Service) Moved(name string) error {
	p, _, err := s.opened(name)
	if err == nil {
		p.moved.Store(true)
	}
	return err
}
