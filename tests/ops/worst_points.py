"""The arguments of each special function where a search found it furthest from its exact value,
with that error (`tests.ops.accuracy`); then those where earlier forms of some were further off.
"""

from __future__ import annotations

WORST: list[tuple[str, str, tuple[float, ...]]] = [
    ("exp", "float32", (4.53879451751709,)),  # 0.86 ulp
    ("exp", "float64", (0.42805904868072664,)),  # 0.77 ulp
    ("exp2", "float32", (-2.4829771518707275,)),  # 0.81 ulp
    ("exp2", "float64", (-266.4977331398716,)),  # 0.77 ulp
    ("expm1", "float32", (-16.990856170654297,)),  # 0.70 ulp
    ("expm1", "float64", (0.36063313712476264,)),  # 0.89 ulp
    ("log", "float32", (1.3525959253311157,)),  # 0.74 ulp
    ("log", "float64", (1.277611883754169,)),  # 0.69 ulp
    ("log2", "float32", (1.334688425064087,)),  # 0.65 ulp
    ("log2", "float64", (2.8013067299509995,)),  # 0.52 ulp
    ("log10", "float32", (1.3446555137634277,)),  # 0.59 ulp
    ("log10", "float64", (34.82161503862107,)),  # 0.50 ulp
    ("log1p", "float32", (-3.259367176156047e-08,)),  # 0.85 ulp
    ("log1p", "float64", (0.3308170423134841,)),  # 0.52 ulp
    ("sin", "float32", (520.7667236328125,)),  # 0.74 ulp
    ("sin", "float64", (-753.189369446345,)),  # 0.71 ulp
    ("cos", "float32", (35.32288360595703,)),  # 0.73 ulp
    ("cos", "float64", (1.8310160902826732e+289,)),  # 0.63 ulp
    ("tan", "float32", (132432296673280.0,)),  # 0.75 ulp
    ("tan", "float64", (-18.262336869826445,)),  # 0.59 ulp
    ("asin", "float32", (-0.5500316619873047,)),  # 0.66 ulp
    ("asin", "float64", (-0.501475376981065,)),  # 0.57 ulp
    ("acos", "float32", (0.5458701252937317,)),  # 0.61 ulp
    ("acos", "float64", (0.5907068900636543,)),  # 0.54 ulp
    ("atan", "float32", (1.0535829067230225,)),  # 0.84 ulp
    ("atan", "float64", (-0.8440142131722593,)),  # 0.62 ulp
    ("sinh", "float32", (0.8668165802955627,)),  # 0.65 ulp
    ("sinh", "float64", (37.746993328888976,)),  # 0.53 ulp
    ("cosh", "float32", (0.5615223050117493,)),  # 0.69 ulp
    ("cosh", "float64", (0.1043182751569813,)),  # 0.62 ulp
    ("tanh", "float32", (1.0551120042800903,)),  # 0.81 ulp
    ("tanh", "float64", (1.0487928511345737,)),  # 0.76 ulp
    ("asinh", "float32", (1.1515083312988281,)),  # 0.61 ulp
    ("asinh", "float64", (-0.4529843227861535,)),  # 0.52 ulp
    ("acosh", "float32", (1.0449824333190918,)),  # 0.77 ulp
    ("acosh", "float64", (2.7148087248382975,)),  # 0.53 ulp
    ("atanh", "float32", (-0.4520467519760132,)),  # 0.59 ulp
    ("atanh", "float64", (-0.41215148805088503,)),  # 0.53 ulp
    ("rsqrt", "float32", (808.94677734375,)),  # 0.50 ulp
    ("rsqrt", "float64", (1.4575060764953673,)),  # 0.50 ulp
    ("sigmoid", "float32", (-18.2085018157959,)),  # 0.78 ulp
    ("sigmoid", "float64", (-0.23972916422594445,)),  # 0.67 ulp
    ("logit", "float32", (0.2818450629711151,)),  # 2.84 ulp
    ("logit", "float64", (0.29616623444353646,)),  # 2.40 ulp
    ("sinc", "float32", (21.082605361938477,)),  # 2.62 ulp
    ("sinc", "float64", (0.8994418588091779,)),  # 1.65 ulp
    ("softplus", "float32", (-1.262282133102417,)),  # 1.31 ulp
    ("softplus", "float64", (-13.380586671387883,)),  # 0.90 ulp
    ("logsigmoid", "float32", (2.74672269821167,)),  # 1.38 ulp
    ("logsigmoid", "float64", (0.6680321056512097,)),  # 1.01 ulp
    ("silu", "float32", (-2.049431800842285,)),  # 3.10 ulp
    ("silu", "float64", (-23.294045872274747,)),  # 2.96 ulp
    ("mish", "float32", (-16.076892852783203,)),  # 3.63 ulp
    ("mish", "float64", (-11.550937883799714,)),  # 3.26 ulp
    ("elu", "float32", (-16.99064064025879,)),  # 0.70 ulp
    ("elu", "float64", (-0.4287623511424572,)),  # 0.53 ulp
    ("erf", "float32", (-0.948674738407135,)),  # 0.77 ulp
    ("erf", "float64", (-1.0321055506471457,)),  # 0.81 ulp
    ("erfc", "float32", (6.9084792137146,)),  # 0.50 ulp
    ("erfc", "float64", (26.553887789448478,)),  # 0.73 ulp
    ("erfcx", "float32", (942.2039794921875,)),  # 0.50 ulp
    ("erfcx", "float64", (0.0011405896889163272,)),  # 3.98 ulp
    ("erfinv", "float32", (-0.9999492168426514,)),  # 0.50 ulp
    ("erfinv", "float64", (-0.5956638120490307,)),  # 0.54 ulp
    ("ndtr", "float32", (-4.819035053253174,)),  # 0.50 ulp
    ("ndtr", "float64", (-6.651443700189836e-07,)),  # 4.02 ulp
    ("ndtri", "float32", (0.17227394878864288,)),  # 0.50 ulp
    ("ndtri", "float64", (0.8267293091768932,)),  # 3.20 ulp
    ("log_ndtr", "float32", (-0.9997243881225586,)),  # 1.96 ulp
    ("log_ndtr", "float64", (0.008817152808515425,)),  # 4.03 ulp
    ("lgamma", "float32", (2.4073386192321777,)),  # 0.50 ulp
    ("lgamma", "float64", (8.361295331719838,)),  # 0.54 ulp
    ("digamma", "float32", (679.6608276367188,)),  # 0.50 ulp
    ("digamma", "float64", (2.8850120326573805,)),  # 0.50 ulp
    ("i0", "float32", (7.996870040893555,)),  # 0.50 ulp
    ("i0", "float64", (7.999999866777883,)),  # 2.79 ulp
    ("i0e", "float32", (-1.606918454170227,)),  # 0.50 ulp
    ("i0e", "float64", (2.8719143663291504,)),  # 2.17 ulp
    ("i1", "float32", (1.3948310515224187e-38,)),  # 0.50 ulp
    ("i1", "float64", (7.885053279494976,)),  # 2.43 ulp
    ("i1e", "float32", (2.6429890335630375e-41,)),  # 0.50 ulp
    ("i1e", "float64", (2.8719143945601973,)),  # 2.02 ulp
    ("modified_bessel_k0", "float32", (34.12407684326172,)),  # 0.50 ulp
    ("modified_bessel_k0", "float64", (1.9999522171100554,)),  # 8.11 ulp
    ("modified_bessel_k1", "float32", (96.286865234375,)),  # 0.50 ulp
    ("modified_bessel_k1", "float64", (1.8461553344437587,)),  # 4.44 ulp
    ("scaled_modified_bessel_k0", "float32", (41.712310791015625,)),  # 0.50 ulp
    ("scaled_modified_bessel_k0", "float64", (1.9912392721391816,)),  # 7.04 ulp
    ("scaled_modified_bessel_k1", "float32", (910613.875,)),  # 0.50 ulp
    ("scaled_modified_bessel_k1", "float64", (1.4575060764953673,)),  # 3.08 ulp
    ("bessel_j0", "float32", (168.05491638183594,)),  # 0.50 ulp
    ("bessel_j0", "float64", (0.009472719798775906,)),  # 2.61 ulp
    ("bessel_j1", "float32", (2.7064272163414863e-39,)),  # 0.50 ulp
    ("bessel_j1", "float64", (1.0310956372605247,)),  # 2.71 ulp
    ("bessel_y0", "float32", (0.013232693076133728,)),  # 0.50 ulp
    ("bessel_y0", "float64", (1.6929083355790833e-05,)),  # 3.78 ulp
    ("bessel_y1", "float32", (28.83390998840332,)),  # 0.50 ulp
    ("bessel_y1", "float64", (767.3859173149245,)),  # 3.38 ulp
    ("spherical_bessel_j0", "float32", (520.9779052734375,)),  # 1.57 ulp
    ("spherical_bessel_j0", "float64", (0.8622285689996136,)),  # 1.24 ulp
    ("airy_ai", "float32", (-495.3384704589844,)),  # 0.50 ulp
    ("airy_ai", "float64", (2.6297215022554936,)),  # 1.84 ulp
    ("entr", "float32", (1.7408666610717773,)),  # 1.32 ulp
    ("entr", "float64", (2.898164155306706,)),  # 1.10 ulp
    ("mvlgamma(1)", "float32", (972.9163208007812,)),  # 0.50 ulp
    ("mvlgamma(1)", "float64", (19.32033653735197,)),  # 0.51 ulp
    ("mvlgamma(3)", "float32", (28.84030532836914,)),  # 2.12 ulp
    ("mvlgamma(3)", "float64", (243.90569044217025,)),  # 1.50 ulp
    ("mvlgamma(10)", "float32", (320.90032958984375,)),  # 3.16 ulp
    ("mvlgamma(10)", "float64", (2.4110472247992223e+194,)),  # 2.37 ulp
    ("polygamma(1)", "float32", (0.0625891387462616,)),  # 0.50 ulp
    ("polygamma(1)", "float64", (32.57242020937379,)),  # 2.31 ulp
    ("polygamma(2)", "float32", (167.30126953125,)),  # 0.50 ulp
    ("polygamma(2)", "float64", (0.002760171210524404,)),  # 1.92 ulp
    ("polygamma(3)", "float32", (34.152217864990234,)),  # 0.50 ulp
    ("polygamma(3)", "float64", (342.07504398743197,)),  # 3.39 ulp
    ("polygamma(10)", "float32", (99.4105453491211,)),  # 0.50 ulp
    ("polygamma(10)", "float64", (0.677591588181184,)),  # 5.39 ulp
    ("polygamma(30)", "float32", (0.7465736865997314,)),  # 0.50 ulp
    ("polygamma(30)", "float64", (7.306746057623477,)),  # 4.92 ulp
    ("polygamma(100)", "float32", (81.21102905273438,)),  # 0.50 ulp
    ("polygamma(100)", "float64", (38.49045579659019,)),  # 5.20 ulp
    ("polygamma(170)", "float32", (69.74748992919922,)),  # 0.50 ulp
    ("polygamma(170)", "float64", (37.46277221728675,)),  # 3.64 ulp
    ("polygamma(1) below 0", "float32", (-2.1366206247653733e-16,)),  # 0.50 ulp
    ("polygamma(1) below 0", "float64", (-7.500000036404442,)),  # 1.37 ulp
    ("polygamma(2) below 0", "float32", (-7.971309723409092e-10,)),  # 0.50 ulp
    ("polygamma(2) below 0", "float64", (-0.4998576799515304,)),  # 3.25 ulp
    ("polygamma(3) below 0", "float32", (-1.0143519639968872,)),  # 0.50 ulp
    ("polygamma(3) below 0", "float64", (-7.500601577080875,)),  # 2.34 ulp
    ("polygamma(10) below 0", "float32", (-0.9892716407775879,)),  # 0.50 ulp
    ("polygamma(10) below 0", "float64", (-7.499999997840758,)),  # 2.93 ulp
    ("polygamma(31) below 0", "float32", (-9.53550169319056e-35,)),  # 0.00 ulp
    ("polygamma(31) below 0", "float64", (-2.2608310333517565,)),  # 2.17 ulp
    ("atan2", "float32", (18960.775390625, 17370.1875)),  # 0.87 ulp
    ("atan2", "float64", (37.260601047072775, 37.845980565633305)),  # 0.64 ulp
    ("hypot", "float32", (-672.8731689453125, -630.9963989257812)),  # 0.50 ulp
    ("hypot", "float64", (2.4972898567860966, 0.03908165039503438)),  # 0.50 ulp
    ("pow", "float32", (0.7706170678138733, -198.41969299316406)),  # 0.50 ulp
    ("pow", "float64", (665.9574069305584, 9.45547869558847)),  # 0.51 ulp
    ("float_power", "float32", (0.4560236930847168, 0.3957759439945221)),  # 0.00 ulp
    ("float_power", "float64", (665.9574069305584, 9.45547869558847)),  # 0.51 ulp
    ("logaddexp", "float32", (0.38987788558006287, 1.879129461991441e-20)),  # 0.94 ulp
    ("logaddexp", "float64", (0.3898781670800516, 1.1763782140045725e-152)),  # 1.13 ulp
    ("logaddexp2", "float32", (0.00041445769602432847, -0.23552200198173523)),  # 2.03 ulp
    ("logaddexp2", "float64", (-0.8967757922633315, -0.5237141255814151)),  # 1.77 ulp
    ("xlogy", "float32", (-13.63353157043457, 1.3377169370651245)),  # 1.50 ulp
    ("xlogy", "float64", (0.9038847148121434, 4.800853293782695e-15)),  # 1.34 ulp
    ("xlog1py", "float32", (221.5384521484375, -3.0537119499740584e-08)),  # 1.98 ulp
    ("xlog1py", "float64", (1.2912893559535546e-05, -0.999879908346752)),  # 1.30 ulp
    ("ldexp", "float32", (63295.9921875, -143.0)),  # 0.50 ulp
    ("ldexp", "float64", (4.277184584109244e-227, -287.0)),  # 0.50 ulp
    ("zeta", "float32", (1.609076738357544, 11.935782432556152)),  # 0.50 ulp
    ("zeta", "float64", (42.66038511649447, 27.893818346154085)),  # 2.88 ulp
    ("zeta of whole", "float32", (17.0, 20.07952880859375)),  # 0.50 ulp
    ("zeta of whole", "float64", (22.0, 10.939470404869876)),  # 2.75 ulp
    ("gammainc", "float32", (2.2677366733551025, 2.335513114929199)),  # 0.50 ulp
    ("gammainc", "float64", (672.499972396625, 671.7661803844815)),  # 4.18 ulp
    ("gammaincc", "float32", (0.023091942071914673, 11.056681632995605)),  # 0.50 ulp
    ("gammaincc", "float64", (60.948340196828646, 60.91107570300508)),  # 7.21 ulp
    ("gammainc's slope", "float32", (0.00012378704559523612, 0.03330417722463608)),  # 0.50 ulp
    ("gammainc's slope", "float64", (150.8766066028768, 144.80337761324506)),  # 2.76 ulp
    ("chebyshev_polynomial_t", "float32", (4.803094863891602, 32.0)),  # 0.50 ulp
    ("chebyshev_polynomial_t", "float64", (4.636280995255914, 17.0)),  # 0.50 ulp
    ("shifted_chebyshev_polynomial_t", "float32", (-0.3172712028026581, 1.0)),  # 0.50 ulp
    ("shifted_chebyshev_polynomial_t", "float64", (-1.947418349486085, 38.0)),  # 0.50 ulp
    ("chebyshev_polynomial_u", "float32", (-2.06884765625, 2.0)),  # 0.50 ulp
    ("chebyshev_polynomial_u", "float64", (-1.0000000000000002, 11.0)),  # 0.50 ulp
    ("shifted_chebyshev_polynomial_u", "float32", (-0.27406004071235657, 1.0)),  # 0.50 ulp
    ("shifted_chebyshev_polynomial_u", "float64", (1.0000000000000127, 13.0)),  # 0.50 ulp
    ("chebyshev_polynomial_v", "float32", (-0.5582355856895447, 1.0)),  # 0.50 ulp
    ("chebyshev_polynomial_v", "float64", (-0.9734336290491993, 1.0)),  # 0.50 ulp
    ("shifted_chebyshev_polynomial_v", "float32", (0.1911725103855133, 1.0)),  # 0.50 ulp
    ("shifted_chebyshev_polynomial_v", "float64", (6.327336688105745e-07, 32.0)),  # 0.50 ulp
    ("chebyshev_polynomial_w", "float32", (7.999999523162842, 1.0)),  # 0.50 ulp
    ("chebyshev_polynomial_w", "float64", (7.999999971052544, 100.0)),  # 0.50 ulp
    ("shifted_chebyshev_polynomial_w", "float32", (-0.3172712028026581, 1.0)),  # 0.50 ulp
    ("shifted_chebyshev_polynomial_w", "float64", (0.9999999999977225, 6.0)),  # 0.50 ulp
    ("hermite_polynomial_h", "float32", (4.733005046844482, 13.0)),  # 0.50 ulp
    ("hermite_polynomial_h", "float64", (4.4407872994620705, 13.0)),  # 0.50 ulp
    ("hermite_polynomial_he", "float32", (-6.81633996963501, 14.0)),  # 0.49 ulp
    ("hermite_polynomial_he", "float64", (2.5104159695451194, 2.0)),  # 0.50 ulp
    ("laguerre_polynomial_l", "float32", (-0.5582355856895447, 1.0)),  # 0.50 ulp
    ("laguerre_polynomial_l", "float64", (-0.9734336290491993, 1.0)),  # 0.50 ulp
    ("legendre_polynomial_p", "float32", (1.0073363780975342, 3.0)),  # 0.50 ulp
    ("legendre_polynomial_p", "float64", (1.0000000011373988, 28.0)),  # 0.50 ulp
    # earlier forms
    ("logit", "float32", (0.4999999701976776,)),
    ("logit", "float64", (0.4999999999714276,)),
    ("sinc", "float32", (1504320.0,)),
    ("sinc", "float64", (9.889100602057507e43,)),
    ("polygamma(1)", "float64", (2.7514620195468852e-05,)),
    ("polygamma(1)", "float64", (5.580777336294473e-211,)),
    ("polygamma(2)", "float64", (2.4979324429602032,)),
    ("polygamma(3)", "float64", (0.007517100124605122,)),
    ("polygamma(10)", "float32", (2.637115781578228e-33,)),
    ("polygamma(10)", "float32", (26029.173828125,)),
    ("polygamma(10)", "float64", (4.326404580583776e29,)),
    ("polygamma(30)", "float32", (90.58260345458984,)),
    ("polygamma(100)", "float32", (921.618408203125,)),
    ("polygamma(100)", "float64", (3570.386218529132,)),
    ("polygamma(170)", "float64", (0.9912159152165826,)),
    ("polygamma(1) below 0", "float32", (-1.3731945215870971e-19,)),
    ("polygamma(1) below 0", "float64", (-2.896082856780778e-147,)),
    ("polygamma(2) below 0", "float32", (-5.955872730764589e-13,)),
    ("ldexp", "float32", (7.312740832120048e-37, 168.0)),
    ("zeta of whole", "float64", (39.0, 96371329.84737009)),
    ("gammainc", "float64", (2.98593194e-314, 0.030598163732251576)),
    ("gammaincc", "float64", (2.646866421e-314, 0.030604468543287567)),
    ("gammainc", "float64", (772.9789326824005, 389.39529999)),
    ("laguerre_polynomial_l", "float64", (-0.21548678974250796, 27.0)),
    ("legendre_polynomial_p", "float64", (-1.0038072729918506, 20.0)),
    ("shifted_chebyshev_polynomial_t", "float64", (-1.6935704775916996e-08, 24.0)),
    ("shifted_chebyshev_polynomial_w", "float64", (-7.868141852683322, 27.0)),
    ("silu", "float32", (-95.0,)),
    ("silu", "float64", (-720.0,)),
    ("mish", "float32", (-95.0,)),
    ("mish", "float64", (-720.0,)),
    ("ldexp", "float32", (0.0, 300.0)),
    ("ldexp", "float32", (1.401298464324817e-45, 254.0)),
    ("ldexp", "float64", (0.0, 2500.0)),
    ("ldexp", "float64", (5e-324, 2090.0)),
]  # fmt: skip
