package scenario

// Informer is a group of informers: each mirrors the engine, and tells handlers
// what changes.
type Informer struct {
	// Name is what reports call the group. Default: informers-1 and so on.
	Name string `yaml:"name,omitempty"`
	// Count is how many informers there are, Handlers how many handlers each has.
	// Default 1.
	Count    int `yaml:"count,omitempty"`
	Handlers int `yaml:"handlers,omitempty"`
	// Prefix mirrors only the keys under a path. It is a template, see [Watcher].
	Prefix string `yaml:"prefix,omitempty"`
	// Policy is what happens to a handler that falls behind. Default conflate.
	Policy HandlerPolicy `yaml:"policy,omitempty"`
	// Buffer is how many notifications may be ahead of a handler; zero means the
	// informer's default.
	Buffer int `yaml:"buffer,omitempty"`
	// Consume slows the handlers down.
	Consume Consume `yaml:"consume,omitempty"`
}

// HandlerPolicy is what happens to an informer's handler that falls behind.
type HandlerPolicy string

// The policies; see package informer.
const (
	MergeChanges HandlerPolicy = "conflate"
	Resnapshot   HandlerPolicy = "resnapshot"
	Block        HandlerPolicy = "block"
)

func (c *checker) informer(at string, in *Informer, s *Scenario) {
	c.count(at+".count", in.Count, maxWorkers)
	c.count(at+".handlers", in.Handlers, maxWorkers)
	c.selection(at, Selection{Prefix: in.Prefix}, s)
	oneOf(c, at+".policy", in.Policy, MergeChanges, Resnapshot, Block)
	c.count(at+".buffer", in.Buffer, maxBuffer)
	c.consume(at, in.Consume)
}

// SelectInformer returns what the ith informer of the group mirrors.
func (p *Plan) SelectInformer(in Informer, i int) Selection {
	return Selection{Prefix: p.Objects.fill(in.Prefix, i)}
}
