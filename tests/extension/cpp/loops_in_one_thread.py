"""torch's parallel loops in a source that is compiled without OpenMP: one thread, which knows of it."""

CPP = r"""
std::vector<int64_t> seen(int64_t count) {
    std::vector<int64_t> of;
    at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
        of = {begin, end, at::get_thread_num(), c10::ParallelGuard::is_enabled()};
    });
    of.push_back(c10::ParallelGuard::is_enabled());
    return of;
}
"""
BUILD = {"cpp_sources": CPP, "functions": ["seen"]}


def check(ext):
    assert ext.seen(1000) == [0, 1000, 0, 1, 0] and ext.seen(0) == [0]
