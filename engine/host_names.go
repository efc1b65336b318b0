package engine

// ActorNames returns the names, sorted, of the actors that are alive on the
// host: to say what leaked. It is empty once all engines are closed.
func (h *Host) ActorNames() []string { return h.system.Names() }
