// The builtins library that has to lie beside a libnvrtc; the fake one needs nothing of it.
extern "C" const int attnjit_fake_nvrtc_builtins;
extern "C" const int attnjit_fake_nvrtc_builtins = 0;
