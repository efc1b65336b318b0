package apiextensions_test

import (
	"testing"
	"testing/synctest"
)

func TestStorage_ServersThatShareItServeTheSameKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := newLasting(t)
		a, b := newCluster(t, storage.config()), newCluster(t, storage.config())
		for range 3 {
			a.define(definition("widgets", "Widget"))
			synctest.Wait() // either may have said that it is established
			a.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"}}`)
			synctest.Wait()
			b.must(200, "GET", widgetsPath+"/w", "")
			b.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
			synctest.Wait()
			for _, c := range []*cluster{a, b} {
				c.must(404, "GET", definitionsPath+"/"+widgetsName, "")
				c.must(404, "GET", widgetsPath, "")
			}
		}
	})
}
