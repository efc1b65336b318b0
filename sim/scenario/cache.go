package scenario

import "time"

// Cache is a group of object caches: each holds references to single objects and
// follows those, as a kubelet does the configmaps of its pods.
type Cache struct {
	// Name is what reports call the group. Default: caches-1 and so on.
	Name string `yaml:"name,omitempty"`
	// Count is how many caches there are. Default 1.
	Count int `yaml:"count,omitempty"`
	// References is how many references the whole group holds, to objects drawn
	// at random of those that there are at the start, so that several may be to
	// one. Default: one for each object.
	References int `yaml:"references,omitempty"`
	// Rate is how many references of the whole group are read per second.
	// Required.
	Rate float64 `yaml:"rate"`
	// Churn is the share of the reads, from 0 to 1, before which the reference is
	// released and another acquired.
	Churn float64 `yaml:"churn,omitempty"`
	// Idle is how long an object is followed without being read; zero means the
	// cache's default.
	Idle time.Duration `yaml:"idle,omitempty"`
}

func (c *checker) cache(at string, ca *Cache, s *Scenario) {
	c.count(at+".count", ca.Count, maxWorkers)
	c.count(at+".references", ca.References, MaxWatchers)
	c.rate(at+".rate", ca.Rate, true)
	c.share(at+".churn", ca.Churn)
	c.span(at+".idle", ca.Idle)
	if s.Objects.Count == 0 {
		c.wrong(at, "there are no objects to refer to", "add objects.count")
	}
}
